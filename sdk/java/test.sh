#!/bin/sh
# Runs the tests of the Java packages with javac -Xlint:all -Werror and Javadoc's
# checks. Maven's packages go to build/java. With FIRN_URL, or Go to build a
# server, the tests of the Spring package take IDs from a real one.
#
#	sdk/java/test.sh
set -eu
cd "$(dirname "$0")/../.."
for program in mvn javac java; do
	if ! command -v $program >/dev/null; then
		echo "skipped sdk/java: no $program here"
		exit 0
	fi
done
if ! javac --release 17 --version >/dev/null 2>&1; then
	echo 'skipped sdk/java: no Java 17 or newer here'
	exit 0
fi
out=$PWD/build/java
mkdir -p "$out"

# maven MODULE GOAL… runs Maven. It fails with 2 if packages are unavailable.
maven() {
	module=$1
	shift
	log=$out/maven.log
	mvn -B -q -Dmaven.repo.local="$out/m2" -f "$module/pom.xml" "$@" >"$log" 2>&1 && return 0
	grep -v '^	at \|^WARNING\|^INFO' "$log"
	if grep -q 'Could not transfer\|could not be resolved\|Could not resolve' "$log"; then
		echo "skipped $module: its Maven packages are unavailable"
		return 2
	fi
	return 1
}

# count prints the sum of an attribute in the reports of a module.
count() {
	cat "$1"/target/surefire-reports/TEST-*.xml 2>/dev/null |
		sed -n "s/^<testsuite .* $2=\"\([0-9]*\)\".*/\1/p" | awk '{ n += $1 } END { print n + 0 }'
}

passed=0 failed=0
# module DIR GOAL… runs Maven on a module and counts its tests.
module() {
	rm -rf "$1/target/surefire-reports"
	code=0
	maven "$@" || code=$?
	bad=$(($(count "$1" failures) + $(count "$1" errors)))
	if [ $code = 1 ] && [ $bad = 0 ]; then bad=1; fi
	failed=$((failed + bad))
	passed=$((passed + $(count "$1" tests) - $(count "$1" skipped) - bad))
	test $code = 0
}

if module sdk/java install javadoc:javadoc; then
	classes=$out/classes
	javac -Xlint:all -Werror -cp sdk/java/target/classes -d "$classes" sdk/java/conformance/*.java || failed=$((failed + 1))
	if [ -e sdk/java/spring/pom.xml ]; then
		if [ -z "${FIRN_URL:-}" ] && command -v go >/dev/null && (cd server && CGO_ENABLED=0 go build -o "$out/firn" ./cmd/firn); then
			FIRN_PROGRAM=$out/firn
			export FIRN_PROGRAM
		fi
		if module sdk/java/spring install; then
			module sdk/java/spring/boot4 test || :
		fi
	fi
fi
echo "$passed passed, $failed failed"
test $failed = 0
