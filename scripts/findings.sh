#!/bin/sh
# Runs the findings, all or the named ones, and reports which no longer hold. They install
# packages from public registries, so make test does not run them.
#
#	scripts/findings.sh [NAME...]
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
if [ $# -eq 0 ]; then
	for file in findings/*.sh; do
		set -- "$@" "$(basename "$file" .sh)"
	done
fi
hold=0 changed=0 failed=0
for name; do
	code=0
	timeout 600 sh "findings/$name.sh" >"build/finding.log" 2>&1 </dev/null || code=$?
	if [ "$code" -eq 0 ]; then
		hold=$((hold + 1))
		echo "holds    $name"
	elif grep -q ': no longer holds$' build/finding.log; then
		changed=$((changed + 1))
		echo "CHANGED  $name"
		sed 's/^/	/' build/finding.log
	else
		failed=$((failed + 1))
		echo "NOT RUN  $name (exit $code)"
		tail -n 5 build/finding.log | sed 's/^/	/'
	fi
done
echo "findings: $hold hold, $changed changed, $failed not run"
[ "$changed" -eq 0 ] && [ "$failed" -eq 0 ]
