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

# One build at a time: tests of several packages call this at once. A lock of a
# build that was killed is taken over after five minutes.
lock=bin/etcd.lock
waited=0
outdated() {
	! [ -x "$bin" ] || [ "$(cat "$bin.stamp" 2>/dev/null)" != "$stamp" ]
}
stamp=$(cksum <tools/etcd/go.sum)-$(go env GOVERSION GOOS GOARCH | tr '\n' -)
while outdated; do
	if mkdir "$lock" 2>/dev/null; then
		trap 'rmdir "$lock"' EXIT
		trap 'exit 1' INT TERM HUP
		if outdated; then
			(cd tools/etcd && GOWORK=off GOFLAGS= go build -buildvcs=false -o "$bin.new" go.etcd.io/etcd/server/v3) >&2
			mv "$bin.new" "$bin"
			echo "$stamp" >"$bin.stamp"
		fi
		break
	fi
	sleep 1
	waited=$((waited + 1))
	if [ $waited -ge 300 ]; then
		rmdir "$lock" 2>/dev/null || true
		waited=0
	fi
done
echo "$bin"
