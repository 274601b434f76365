#!/bin/sh
# Builds a server that tests start, and prints its path: bin/NAME, from the
# sources that tools/DIR/go.mod names. It does nothing if bin/NAME already has that
# version. The output of the build goes to stderr.
#
# With FIRN_CACHED=1 it fails, instead of downloading or compiling what Go has not cached.
#
#	scripts/tool.sh NAME DIR PACKAGE
set -eu
cd "$(dirname "$0")/.."
mkdir -p bin
name=$1 dir=tools/$2 package=$3
bin=$PWD/bin/$name
new=$bin.new.$$

# One build at a time, because tests of several packages call this at once. The lock
# names its process, and is taken over when that has ended. If two build anyway, they
# do not interfere with each other.
lock=$bin.lock
unnamed=0
outdated() {
	! [ -x "$bin" ] || [ "$(cat "$bin.stamp" 2>/dev/null)" != "$stamp" ]
}
build() {
	(cd "$dir" && GOWORK=off GOFLAGS= CGO_ENABLED=0 go build "$@" -buildvcs=false -trimpath -ldflags '-s -w' -o "$new" "$package")
}
stamp=$(cat "$dir"/go.sum "$dir"/*.go 2>/dev/null | cksum)-$(go env GOVERSION GOOS GOARCH | tr '\n' -)
while outdated; do
	if mkdir "$lock" 2>/dev/null; then
		trap 'rm -rf "$lock" "$new"' EXIT
		trap 'exit 1' INT TERM HUP
		echo $$ >"$lock/pid"
		if outdated; then
			if [ -n "${FIRN_CACHED:-}" ] && { ! plan=$(export GOPROXY=off; build -n 2>&1) || echo "$plan" | grep -q '/compile '; }; then
				echo "$name is not built here yet: make test-all builds it" >&2
				exit 1
			fi
			build >&2
			mv "$new" "$bin"
			echo "$stamp" >"$bin.stamp"
		fi
		break
	fi
	sleep 1
	if pid=$(cat "$lock/pid" 2>/dev/null) && [ -n "$pid" ]; then
		kill -0 "$pid" 2>/dev/null || rm -rf "$lock"
	elif [ $((unnamed += 1)) -gt 10 ]; then # it was killed before it wrote its name
		rm -rf "$lock"
		unnamed=0
	fi
done
echo "$bin"
