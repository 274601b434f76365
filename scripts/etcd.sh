#!/bin/sh
# Builds the etcd server that tests start, and prints its path: bin/etcd, from
# the sources that tools/etcd/go.mod names. Nothing is done if it is that version
# already. What the build says goes to stderr.
#
# FIRN_ETCD names another etcd to use; it is printed as it is.
set -eu
if [ -n "${FIRN_ETCD:-}" ]; then
	echo "$FIRN_ETCD"
	exit
fi
cd "$(dirname "$0")/.."
mkdir -p bin
bin=$PWD/bin/etcd
new=$bin.new.$$

# One build at a time, as tests of several packages call this at once. The lock
# names its process, and is taken over when that is gone. Should two build after
# all, they do not get in each other's way.
lock=bin/etcd.lock
unnamed=0
outdated() {
	! [ -x "$bin" ] || [ "$(cat "$bin.stamp" 2>/dev/null)" != "$stamp" ]
}
stamp=$(cksum <tools/etcd/go.sum)-$(go env GOVERSION GOOS GOARCH | tr '\n' -)
while outdated; do
	if mkdir "$lock" 2>/dev/null; then
		trap 'rm -rf "$lock" "$new"' EXIT
		trap 'exit 1' INT TERM HUP
		echo $$ >"$lock/pid"
		if outdated; then
			(cd tools/etcd && GOWORK=off GOFLAGS= go build -buildvcs=false -o "$new" go.etcd.io/etcd/server/v3) >&2
			mv "$new" "$bin"
			echo "$stamp" >"$bin.stamp"
		fi
		break
	fi
	sleep 1
	if pid=$(cat "$lock/pid" 2>/dev/null) && [ -n "$pid" ]; then
		kill -0 "$pid" 2>/dev/null || rm -rf "$lock"
	elif [ $((unnamed += 1)) -gt 10 ]; then # it was killed before it gave its name
		rm -rf "$lock"
		unnamed=0
	fi
done
echo "$bin"
