# Runs a program under a node ID: firn.sh NAME WHO ADDRESS KEY.
exec ./firn node run --sequencer "$4" --nodes 7..7 --window 30s --log-level error --store "etcd://$3/firn" -- \
	sh -c 'trap "echo TOLD SIGTERM; exit" TERM; echo "HAVE $$"; while :; do sleep 0.1; done'
