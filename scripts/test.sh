#!/bin/sh
# Runs the checks of the published modules, for make test. All steps run, even
# after one has failed; the summary at the end lists the failures.
#
#	scripts/test.sh        what finds most mistakes in the least time
#	scripts/test.sh all    everything, also with CI=true or FIRN_ALL=1
#
# It needs Go and git, and the modules in the go.mod files. Other programs that
# some tests need are installed from Debian's packages if possible; otherwise
# these tests report that they are skipped. It writes only to bin/ and build/.
#
# Nothing here is limited in time, because machines differ: what takes an hour hangs.
set -eu
cd "$(dirname "$0")/.."
unset GOWORK
exec 2>&1 # output and errors, in order
if [ "${1:-}" = all ] || [ "${CI:-}" = true ]; then FIRN_ALL=1; fi
FIRN_ALL=${FIRN_ALL:-}
export FIRN_ALL # tests and scripts read it too
# As releases are built; and programs that tests build compile nothing a second time.
export CGO_ENABLED=0
export TZ=America/St_Johns # half an hour off, so that a time that is not in UTC shows
# Without debugging information, it compiles faster.
test -n "$FIRN_ALL" || export GOFLAGS=-gcflags=all=-dwarf=false

root=$PWD
modules=$(sh scripts/modules.sh)
mkdir -p bin build
summary=build/test.summary
facts=build/test.facts
: >$summary
: >$facts

. scripts/steps.sh

# Errexit is off inside the steps: each must return its status.

check_gofmt() {
	files=$("$(go env GOROOT)/bin/gofmt" -l .) || return 1
	test -z "$files" && return 0
	echo "not formatted, run gofmt -w on:"
	echo "$files"
	return 1
}

build_staticcheck() {
	(cd tools && GOWORK=off go build -buildvcs=false -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck)
}

check_static() {
	(cd "$1" && "$root/bin/staticcheck" ./...)
}

# Each module by itself, as its users see it.
check_alone() {
	(cd "$1" && GOWORK=off go build -buildvcs=false -o /dev/null ./... && GOWORK=off go mod tidy -diff)
}

# Vets all modules in one go command, which compiles what they share once. Lanes
# that begin without it compile the same packages at the same time, each for itself.
check_vet() {
	go vet $(for module in $modules; do echo "./$module/..."; done)
}

# The root module must compile on the system. go vet checks the types in all
# files, tests included, but compiles most of the standard library first.
check_system() {
	GOOS=${1%/*} GOARCH=${1#*/} go vet ./... || return 1
	case $1 in
	*/386) ;; # vet is enough to check the sizes of types
	*) GOOS=${1%/*} GOARCH=${1#*/} go build -buildvcs=false ./... ;;
	esac
}

# run_tests MODULE tests a module, which is vetted already.
run_tests() {
	case $1 in
	.) log=build/test.root.log ;;
	*) log=build/test.$(echo "$1" | tr / -).log ;;
	esac
	# Many tests wait for stores and windows: several packages at a time fill two cores.
	"$root/bin/gotest" "$log" "$facts" "$1" -vet=off -p 4 -parallel 4 -timeout 1h ./...
}

# Some test must have read every row of the golden data.
check_vectors() {
	code=0
	for file in $(find . -path '*/testdata/vectors/*.ndjson' | sort); do
		rows=$(grep -c . "$file") || rows=0
		read=$(awk -v file="${file##*/}" '$1 == "vectors" && $2 == file { n += $3 } END { print n + 0 }' $facts)
		if [ "$read" -lt "$rows" ]; then
			echo "$file has $rows rows, and the tests have read $read:" \
				"a test must read all and report that with t.Log(\"vectors: ${file##*/} N rows\")"
			code=1
		fi
	done
	return $code
}

# tools/ is not a published module either.
check_tools() {
	(cd tools && GOWORK=off go vet ./... && GOWORK=off "$root/bin/staticcheck" ./... && GOWORK=off go test -count=1 ./... && GOWORK=off go mod tidy -diff)
}

# The modules that make releases and test deploy/. They are skipped if their
# dependencies cannot be fetched.
check_side() {
	(cd "$1" && GOWORK=off go mod download) >build/side.log 2>&1 || {
		echo "skipped $1: its modules are not available here" | tee -a $facts
		return 0
	}
	(cd "$1" && GOWORK=off go vet ./... && GOWORK=off "$root/bin/staticcheck" ./... && GOWORK=off go mod tidy -diff) || return 1
	(export GOWORK=off && run_tests "$1")
}

# bench/ is not a published module, and depends on many others to measure them.
check_bench() {
	(cd bench && GOWORK=off go mod download) >build/bench.log || {
		echo 'skipped bench: its modules are not available here' | tee -a $facts
		return 0
	}
	sh scripts/bench.sh check
}

# The packages for other languages, each with its language's own tools. They are
# skipped, with a line, if the language is not installed.
check_sdk() {
	sh "$1/test.sh" >"build/${1#sdk/}.log" 2>&1 && code=0 || code=$?
	test $code = 0 || cat "build/${1#sdk/}.log"
	sed -n 's/^skipped /skipped /p' "build/${1#sdk/}.log" | tee -a $facts
	sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/count \1 \2 0/p' "build/${1#sdk/}.log" | tail -1 >>$facts
	return $code
}

# The etcd that tests start. They are skipped without it.
build_etcd() {
	test -n "$FIRN_ALL" || return 0 # tests use it if it is built
	sh scripts/etcd.sh >/dev/null || echo 'SKIPPED: etcd does not build here: its tests will be skipped'
}

# The Kubernetes API server that tests start. Its first build takes longer than
# everything else together; Go caches it for all checkouts of this user.
build_kube() {
	test -n "$FIRN_ALL" || return 0 # tests use it if it is built
	sh scripts/kube.sh >/dev/null || echo 'SKIPPED: kube-apiserver does not build here: its tests will be skipped'
}

# The S3 server that tests start.
build_versitygw() {
	test -n "$FIRN_ALL" || return 0 # tests use it if it is built
	sh scripts/versitygw.sh >/dev/null || echo 'SKIPPED: versitygw does not build here: its tests will be skipped'
}

# The programs that tests of stores and protocols start.
install_packages() {
	{
		sh scripts/packages.sh postgres=postgresql mariadbd=mariadb-server redis-cli=redis-tools
		sh scripts/packages.sh chromium=chromium # separately, because it is large
		test -z "$FIRN_ALL" || sh scripts/packages.sh php=php-cli php=php-redis ruby=ruby-redis rpm=rpm promtool=prometheus
	} |
		sed 's/^SKIPPED: /skipped packages: /' | tee -a $facts
}

# Most tests wait for stores and windows, and packages for a network, so lanes of
# steps run side by side, each with its own facts. They do not receive an
# interrupt by themselves.
lane() {
	(facts=$facts.$1 && : >"$facts" && "lane_$1") >"build/lane.$1.log" 2>&1 </dev/null &
	eval "lane_$1_pid=$!"
}
trap 'trap - INT TERM; kill -TERM 0' INT TERM

# join waits for lanes, and prints their output one after the other.
join() {
	for lane in "$@"; do
		eval "wait \$lane_${lane}_pid" || :
		cat "build/lane.$lane.log"
		cat "$facts.$lane" >>$facts
	done
}

lane_packages() {
	step 'install what tests start' install_packages
}

lane_root() {
	step 'go test .' run_tests .
}

lane_server() {
	step 'go test server' run_tests server
}

lane_rest() {
	for module in $modules; do
		case $module in . | server) ;; *) step "go test $module" run_tests "$module" ;; esac
	done
	test -n "$FIRN_ALL" || return 0
	for sdk in sdk/*; do
		step "test $sdk" check_sdk "$sdk"
	done
	step 'check releases' check_side tools/release
	step 'check deploy' check_side tools/deploy
}

checks() {
	for system in linux/amd64 linux/arm64 linux/386 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
		step "build for $system" check_system $system
	done
	step 'build staticcheck' build_staticcheck
	for module in $modules; do
		step "staticcheck $module" check_static "$module"
	done
	for module in $modules; do
		step "without go.work: $module" check_alone "$module"
	done
	for module in examples/go examples/gorm examples/webshop; do
		step "without go.work: $module" check_alone "$module"
	done
	step 'go test examples/gorm' env GOWORK=off go -C examples/gorm test -timeout 10m ./...
	step 'check the proto files' sh scripts/proto.sh check
	step "check the console's pages" sh scripts/templ.sh check
	step 'check tools' check_tools
	step 'known vulnerabilities' sh scripts/vuln.sh
	step 'check bench' check_bench
}

lane packages
step gofmt check_gofmt
step 'go vet' check_vet
test -z "$FIRN_ALL" || checks
step 'build etcd' build_etcd
step 'build kube-apiserver' build_kube
step 'build versitygw' build_versitygw
join packages
lane server
lane rest
lane root
if [ -z "$FIRN_ALL" ]; then
	for lane in $lane_rest_pid $lane_root_pid; do
		renice -n 10 -p "$lane" >/dev/null 2>&1 || : # the tests of the server take longest
	done
fi
test -z "$FIRN_ALL" || step 'check the model' check_model fast
join root server rest
step 'every vector read' check_vectors

echo
echo '== summary'
cat $summary
awk '
	$1 == "vectors" { files += !($2 in rows); rows[$2] += $3; all += $3 }
	$1 == "report" { sub(/^report /, ""); print "report: " $0 }
	END {
		for (f in rows) printf "vectors: %s %d rows\n", f, rows[f] | "sort"
		close("sort")
		printf "vectors: %d rows of %d files\n", all, files
	}' $facts
awk '$1 == "slow" { printf "slow: %s %d s\n", $2, $3 }' $facts
grep '^skipped ' $facts | grep -v 'make test-all' || true
if [ -z "$FIRN_ALL" ]; then
	echo 'left out, make test-all has it: staticcheck, other systems, modules without go.work, examples/gorm, the generated code, tools,' \
		'bench, known vulnerabilities, releases and deploy/, the packages for other languages, the model, most of the simulator,' \
		'the mistakes, building etcd and kube-apiserver, and' \
		"$(grep -c '^skipped .*make test-all' $facts) tests"
fi
awk '
	$1 == "count" { passed += $2; failed += $3; skipped += $4 }
	END { printf "tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped }' $facts
finish 'make test'
