#!/bin/sh
# Runs the benchmarks of bench/, which measure the library, the server and their
# peers, and prints a format that benchstat compares. Rows with a goal follow at
# the end, and those that are short of it.
#
#	scripts/bench.sh core [FLAGS…]    only the library: about a minute
#	scripts/bench.sh all [FLAGS…]     servers and stores too: about ten minutes
#	scripts/bench.sh check            gofmt, vet, staticcheck and the tests of bench/ itself
#
# FLAGS are those of go test, such as -count 6 or -bench ServerRESP.
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
	exec go test -count=1 -timeout 1h -bench . -skip '^BenchmarkServer' -benchtime 1x ./...
	;;
core | all) ;;
*)
	echo "usage: scripts/bench.sh core|all|check [FLAGS…]" >&2
	exit 2
	;;
esac

if test -z "${FIRN_BENCH_GOALS:-}"; then
	{ FIRN_BENCH_GOALS=1 sh scripts/bench.sh "$what" "$@" || echo FAIL; } | awk -f bench/goals.awk
	exit
fi

(cd bench && go test -run '^$' -bench . -skip '^BenchmarkServer' -benchtime 0.5s "$@" .)
# Without the processor's counter, Next reads the clock.
(cd bench && go test -run '^$' -bench '^BenchmarkNext$' -skip '^BenchmarkServer' -benchtime 0.5s -tags purego "$@" .)
test "$what" = all || exit 0

# The servers to measure. Benchmarks of those that cannot be installed are skipped.
sh scripts/packages.sh redis-server=redis-server redis-benchmark=redis-tools >&2
FIRN_ETCD=$(sh scripts/etcd.sh) || FIRN_ETCD=
export FIRN_ETCD
(unset GOWORK && make -s build)

# java_peer NAME GROUP:ARTIFACT:VERSION... prints the command of a peer in Java.
java_peer() {
	name=$1 lib=$PWD/build/$1
	shift
	mkdir -p "$lib"
	{
		echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
		echo '<groupId>org.example</groupId><artifactId>bench</artifactId><version>1</version><packaging>pom</packaging><dependencies>'
		printf '%s\n' "$@" | sed 's|\(.*\):\(.*\):\(.*\)|<dependency><groupId>\1</groupId><artifactId>\2</artifactId><version>\3</version></dependency>|'
		echo '</dependencies></project>'
	} >"$lib/pom.xml"
	if command -v java >/dev/null && (cd "$lib" && mvn -q -B dependency:copy-dependencies -DoutputDirectory="$lib/jars") >&2; then
		echo "java -Xmx512m -cp $lib:$lib/jars/* $PWD/bench/$name.java"
	else
		echo "SKIPPED: $name: java, mvn or its libraries are not available" >&2
	fi
}
FIRN_BENCH_LETTUCE=$(java_peer LettucePeer io.lettuce:lettuce-core:7.7.0.RELEASE)
FIRN_BENCH_PEERS=$(java_peer Peers com.hazelcast:hazelcast:5.5.0 me.ahoo.cosid:cosid-core:2.6.8 \
	com.xfvape.uid:uid-generator:0.0.4-RELEASE io.hypersistence:hypersistence-tsid:2.1.4 \
	com.github.f4b6a3:tsid-creator:5.2.6 com.github.yitter:yitter-idgenerator:1.0.6)
find sdk/java/src/main/java -name '*.java' -exec javac -nowarn -d build/Peers {} + || FIRN_BENCH_PEERS=
FIRN_BENCH_FERROID=$PWD/build/ferroid/release/ferroid-peer
cargo build -q --release --manifest-path bench/ferroid/Cargo.toml --target-dir build/ferroid >&2 || FIRN_BENCH_FERROID=
export FIRN_BENCH_LETTUCE FIRN_BENCH_PEERS FIRN_BENCH_FERROID
cd bench
exec go test -run '^$' -bench '^BenchmarkServer' -timeout 30m "$@" .
