#!/bin/sh
# Checks the code that Firn calls for known vulnerabilities, with govulncheck. Its database
# is on the network. If it is unreachable, the script reports that the check was skipped,
# and succeeds.
set -eu
cd "$(dirname "$0")/.."
unset GOWORK
version=v1.8.0
mkdir -p bin build

skip() {
	echo "skipped vulnerabilities: $1" | tee -a build/test.facts
	exit 0
}

GOBIN=$PWD/bin GOWORK=off GOFLAGS= go install golang.org/x/vuln/cmd/govulncheck@$version >build/vuln.log 2>&1 ||
	skip 'govulncheck does not build here'
for module in $(sh scripts/modules.sh); do
	(cd "$module" && GOWORK=off "$OLDPWD/bin/govulncheck" ./...) >build/vuln.log 2>&1 && continue
	if grep -q 'vulnerability database\|fetching vulnerabilities\|vuln.go.dev' build/vuln.log && ! grep -q '^Vulnerability #' build/vuln.log; then
		skip 'the database of vulnerabilities cannot be reached'
	fi
	echo "in $module:"
	cat build/vuln.log
	exit 1
done
echo 'found no known vulnerabilities in called code'
