#!/bin/sh
# Tests the tests of grant and sequencer: changes the code in many small ways, one at a time,
# and fails if no test notices and docs/protocol/survivors.txt does not explain why.
#
#	scripts/mutate.sh [FLAG]…    -time 10m  test as many as fit; the next run continues there
#	                             -again     skip those that a test has already caught
#	                             -only RE   test only those that match
#	                             -list      list them
#
# It writes only to bin/ and build/mutate/; the results are in build/mutate/results.json.
set -eu
cd "$(dirname "$0")/.."
unset GOWORK
mkdir -p bin
(cd tools && GOWORK=off go build -buildvcs=false -o ../bin/mutate ./mutate)
# TestMutants builds its own programs, without mutants; TestProcesses waits for real time.
exec bin/mutate -dir build/mutate -survivors docs/protocol/survivors.txt \
	-tests './grant ./sequencer' \
	-skip '^(TestMutants|TestProcesses)$' \
	"$@" ./grant ./sequencer
