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
rm -rf compiled-* # of tests that were killed
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
# Prisma and TypeORM, 400 MB. Without a schema engine, Prisma only generates its client.
orm() {
	rm -rf ../typescript-orm
	cp -R "$root/examples/typescript-orm" .. && cd ../typescript-orm &&
		npm install --no-audit --no-fund --no-package-lock --no-save --loglevel=error "$root/build/typescript" >&2 &&
		PRISMA_SCHEMA_ENGINE_BINARY=/bin/true npm test >test.log 2>&1 || {
		tail -50 test.log
		return 1
	}
}
test -z "${FIRN_ALL-}" || check "Prisma and TypeORM" orm
echo "$passed passed, $failed failed"
test $failed -eq 0
