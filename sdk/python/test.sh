#!/bin/sh
# Runs the tests of the Python package, mypy and ruff, which are installed into
# build/python. FIRN_URL names a server for the tests that need a real one.
#
#	sdk/python/test.sh
set -eu
cd "$(dirname "$0")"
python=${PYTHON:-python3}
if ! "$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
	echo 'skipped sdk/python: no Python 3.10 or newer here'
	exit 0
fi
venv=../../build/python
if ! "$venv/bin/python" -c 'import mypy' 2>/dev/null; then
	mkdir -p ../../build
	"$python" -m venv "$venv"
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
# uWSGI is compiled, for a minute.
if [ ! -e "$venv/bin/uwsgi" ] && { [ -z "${FIRN_ALL-}" ] || ! "$venv/bin/python" -m pip install --quiet uwsgi==2.0.31; }; then
	echo 'skipped uWSGI in sdk/python: FIRN_ALL=1 and a C compiler install it'
fi
export MYPY_CACHE_DIR=../../build/mypy RUFF_CACHE_DIR=../../build/ruff PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1
passed=0 failed=0
check() {
	if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED: $*"; fi
}
all='bench.py firn conformance tests ../../examples/python'
check "$venv/bin/ruff" format --check --quiet $all
check "$venv/bin/ruff" check --quiet $all
check "$venv/bin/mypy" firn
check env MYPYPATH=.:tests "$venv/bin/mypy" bench.py conformance tests ../../examples/python
report=$("$venv/bin/python" -X dev -m unittest discover -s tests 2>&1) || echo "$report"
ran=$(echo "$report" | sed -n 's/^Ran \([0-9]*\) tests\{0,1\} in .*/\1/p')
bad=$(echo "$report" | sed -n 's/^FAILED (\(.*\))$/\1/p' | tr ', ' '\n\n' | sed -n 's/^\(failures\|errors\)=//p' | paste -sd+ -)
test -n "$ran" || ran=0 bad=1
failed=$((failed + ${bad:-0}))
passed=$((passed + ran - ${bad:-0}))
echo "$passed passed, $failed failed"
test "$failed" -eq 0
