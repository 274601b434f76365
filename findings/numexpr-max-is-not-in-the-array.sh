#!/bin/sh
# NumExpr: max and min of an int64 array are integers that are not in it.
#
# Package: numexpr 2.14.2, with numpy 2.4.6 (PyPI).
# Guess: the result has the type of the array, int64, so it is one of its
#   elements; or it is a float64 that shows the rounding.
# Behaviour: the reductions go through a double and return an int64 again.
#   Neighbours have one max and min, which can be below the smallest element.
#   sum, comparisons and where are exact, and so is max of numpy.
# Seen 2026-11-29: max and min of n, n+1, n+2 are both n-7, of type int64.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check numexpr==2.14.2 numpy==2.4.6

cat >main.py <<'EOF'
import numexpr
import numpy

n = 1179183313482456071
ids = {"id": numpy.array([n, n + 1, n + 2], dtype="int64")}
for expression in ["max(id)", "min(id)", "sum(id - %d)" % n, "id == %d" % (n + 1)]:
    result = numexpr.evaluate(expression, ids)
    print(expression, result.dtype, result)
print("numpy", ids["id"].max(), ids["id"].min())
print("max is in the array:", numexpr.evaluate("max(id)", ids) in ids["id"])
EOF
cat >want <<'EOF'
max(id) int64 1179183313482456064
min(id) int64 1179183313482456064
sum(id - 1179183313482456071) int64 3
id == 1179183313482456072 bool [False  True False]
numpy 1179183313482456073 1179183313482456071
max is in the array: False
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "numexpr-max-is-not-in-the-array: no longer holds" >&2; exit 1; }
