#!/bin/sh
# Tests the TypeScript package with tsc, eslint and its own tests, and the programs in
# examples/typescript. The last line is "N passed, N failed". With FIRN_URL set to the URL of a
# server, the tests use that as well.
set -eu
cd "$(dirname "$0")"
sh prepare.sh || {
	test $? -eq 3 && exit 0
	exit 1
}
root=$(cd ../.. && pwd)
cd "$root/build/typescript"
passed=0 failed=0
check() {
	name=$1
	shift
	if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED: $name"; fi
}
check tsc npx --no-install tsc -p tsconfig.json
check eslint npx --no-install eslint .
FIRN_ROOT=$root node --test --test-reporter=tap test/*.test.mjs >test.tap 2>&1 || sed -n '/^ *not ok/,/^ *\.\.\./p' test.tap
passed=$((passed + $(sed -n 's/^# pass //p' test.tap | tail -1)))
failed=$((failed + $(sed -n 's/^# \(fail\|cancelled\) //p' test.tap | awk '{ n += $1 } END { print n + 0 }')))
echo "$passed passed, $failed failed"
test $failed -eq 0
