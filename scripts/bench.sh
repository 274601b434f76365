#!/bin/sh
# Builds and runs bench/, which measures the library, the server and their peers, and
# prints a line for each figure.
#
#	scripts/bench.sh core [FLAGS…]    only the library: less than a minute
#	scripts/bench.sh all [FLAGS…]     everything: less than 20 minutes
#	scripts/bench.sh check            gofmt, vet, staticcheck and the tests of bench/ itself
#
# FLAGS are those of the program: -json FILE, -svg DIRECTORY, -doc FILE, -run REGEXP,
# -from FILE. If possible, the program is built twice more: with the tag purego, which
# omits the cycle counter, and with a Go release that has the package uuid.
#
# bench/ is not in go.work: its dependencies must not change the versions with which the
# published modules are built.
set -eu
cd "$(dirname "$0")/.."
export GOWORK=off
what=${1:-all}
test $# = 0 || shift
mkdir -p bin build

case $what in
check)
	(cd tools && go build -buildvcs=false -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck)
	cd bench
	files=$("$(go env GOROOT)/bin/gofmt" -l .)
	test -z "$files" || {
		echo "not formatted, run gofmt -w on:" "$files"
		exit 1
	}
	go vet ./...
	../bin/staticcheck ./...
	go mod tidy -diff
	exec go test -count=1 -timeout 1h ./...
	;;
core | all) ;;
*)
	echo "usage: scripts/bench.sh core|all|check [FLAGS…]" >&2
	exit 2
	;;
esac

(cd bench && go build -buildvcs=false -o ../build/bench .)
(cd bench && go build -buildvcs=false -tags purego -o ../build/bench-purego .)
set -- "$@" -variant 'purego=^next/firn=build/bench-purego'

# The standard library has UUIDs since Go 1.27.
case $(go env GOVERSION) in
go1.2[0-6]*)
	if (cd bench && GOTOOLCHAIN=go1.27.0 go build -buildvcs=false -o ../build/bench-go1.27 .) >build/bench-go1.27.log 2>&1; then
		set -- "$@" -variant 'go1.27=^uuidv7/std=build/bench-go1.27'
	else
		echo "SKIPPED: uuidv7/std: Go 1.27 is not available: $(tail -n 1 build/bench-go1.27.log)" >&2
	fi
	;;
*) set -- "$@" -variant 'go1.27=^uuidv7/std=build/bench' ;;
esac

if [ "$what" = core ]; then
	exec build/bench -core "$@"
fi

# The servers to measure. Those that cannot be installed are reported as skipped.
sh scripts/packages.sh redis-server=redis-server redis-benchmark=redis-tools postgres=postgresql psql=postgresql-client >&2
sh scripts/etcd.sh >/dev/null || echo 'SKIPPED: etcd does not build here' >&2
(unset GOWORK && make -s build)
exec build/bench -firn bin/firn "$@"
