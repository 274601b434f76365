# redis-cli: cli.sh PORT.
echo next "$(redis-cli -p "$1" NEXT orders)"
echo three $(redis-cli -p "$1" NEXT orders 3)
for i in $(seq 100); do echo incr "$(redis-cli -p "$1" INCR orders)"; done
