#!/bin/sh
# Runs long tests for about the given time, and prints a summary.
#
#	scripts/soak.sh [TIME]        TIME such as 10m, 90m or 8h; the default is 8h
#
# Faults and load on stores, servers and clients, the simulator and every fuzz target
# share the time. From two hours on, the whole model is checked first, followed by tests of fixed
# length and all tests under the race detector.
#
# It writes only to bin/ and build/; the full output is in build/soak.*.log.
set -eu
cd "$(dirname "$0")/.."
unset GOWORK
root=$PWD
time=${1:-8h}
case $time in
*[0-9]h) budget=$((${time%h} * 3600)) ;;
*[0-9]m) budget=$((${time%m} * 60)) ;;
*[0-9]s) budget=${time%s} ;;
*)
	echo "usage: scripts/soak.sh [TIME], such as 10m or 8h" >&2
	exit 2
	;;
esac

export FIRN_ALL=1 # for scripts/kube.sh

mkdir -p bin build
facts=$root/build/soak.facts
summary=$root/build/soak.summary
: >"$facts"
: >"$summary"
began=$(date +%s)

# Tests that run for the time in FIRN_SOAK: module, package, test.
timed='. ./grant TestSimulator
server ./internal/test/e2e TestDirectoryChaos
server ./internal/test/e2e TestEtcdChaos
server ./internal/test/e2e TestKubernetesChaos
server ./cmd/firn TestServersOnKubernetes
server ./cmd/firn TestServersOnDirectory
server ./cmd/firn TestServersOnEtcd
server ./cmd/firn TestServersOnPostgreSQL
server ./cmd/firn TestClientsOfKilledServers'
timed_count=9

# Tests of fixed length, which is minutes.
long='. ./grant TestFocuses
. ./internal/mistakes TestMistakes
. ./grant/dirstore TestCrashStates
. ./grant TestFleet
server ./internal/operate/noderun TestNoOverlap
server ./internal/service TestCloseMany
server ./internal/operate/noderun TestGenerators'

. scripts/steps.sh

# run_test MODULE PACKAGE TEST SOAK runs one test with FIRN_SOAK.
run_test() {
	log=$root/build/soak.$3.log
	(export FIRN_SOAK="$4" && bin/gotest "$log" "$facts" "$1" -timeout 48h -run "^$3\$" "$2") || return 1
	# A test that no longer exists would pass.
	grep -q "^--- [A-Z]*: $3 " "$log" || {
		echo "soak: no test $3 in $2: fix scripts/soak.sh"
		return 1
	}
}

# each_of LIST SOAK runs the tests of a list.
each_of() {
	echo "$1" >build/soak.list
	while read -r module package name <&3; do
		step "$name" run_test "$module" "$package" "$name" "$2"
	done 3<build/soak.list
}

run_race() {
	sh scripts/each.sh go test -race -count=1 -timeout 4h ./... >build/soak.race.log 2>&1 && return 0
	grep -v '^ok ' build/soak.race.log
	return 1
}

run_fuzz() {
	sh scripts/fuzz.sh "$1" >build/soak.fuzz.log 2>&1 && code=0 || code=$?
	test $code = 0 || grep -v '^fuzz: elapsed' build/soak.fuzz.log
	tail -n 1 build/soak.fuzz.log | sed 's/^/report /' >>"$facts"
	return $code
}

sh scripts/etcd.sh >/dev/null || echo 'SKIPPED: etcd does not build here: its tests will be skipped'
sh scripts/kube.sh >/dev/null || echo 'SKIPPED: kube-apiserver does not build here: its tests will be skipped'
sh scripts/packages.sh postgres=postgresql mariadbd=mariadb-server redis-cli=redis-tools |
	sed 's/^SKIPPED: /skipped packages: /' | tee -a "$facts"
if [ "$budget" -ge 7200 ]; then
	step 'the whole model' check_model full
	each_of "$long" 1
	step 'all under the race detector' run_race
fi
left=$((budget - $(date +%s) + began))
test $left -gt 60 || left=60
targets=$(grep -rhs '^func Fuzz' --include='*_test.go' . | wc -l)
each_of "$timed" "$((left * 6 / 10 / timed_count))s"
left=$((budget - $(date +%s) + began))
# Building a target and reading its corpus takes some seconds too.
share=$((left / targets - 6))
test $share -ge 1 || share=1
step "$((targets)) fuzz targets, $share s each" run_fuzz "${share}s"

echo
echo "== summary of $(($(date +%s) - began)) s, of $time"
cat "$summary"
awk '$1 == "report" { sub(/^report /, ""); print "report: " $0 }' "$facts"
grep '^skipped ' "$facts" || true
finish 'make soak'
