# What the commands of docs/restore.md call in a test: it runs in $DIR, with
# $PORT. A store's file has setup, backup while a server uses the store, what
# the loss of the store is (fails), and what ends its programs (finally).
set -e
cd "$DIR"
export TMPDIR="$DIR" HOME="$DIR" PATH="$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1):$PATH:/usr/sbin"
firn() { FIRN_TEST_SERVE="$*" GORACE=atexit_sleep_ms=0 "$DIR/firn-test"; }
fails() { :; }
finally() { :; }
