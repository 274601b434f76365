#!/bin/sh
# Daft: a filter or join of a uint64 column by an integer takes neighbouring IDs
# for equal.
#
# Package: daft 0.7.26 (PyPI).
# Guess: columns and literals are integers, so == finds the one row with this
#   ID, and a join of a uint64 with an int64 column pairs equal IDs.
# Behaviour: an int in Python is an int64, and the common type of int64 and
#   uint64 is float64. The column is compared as doubles: == finds the
#   neighbours too, > misses the next ones, is_in and join pair different IDs.
#   With the literal cast to uint64 == is exact, and with int64 on both sides
#   all of them are.
# Seen 2026-11-30: of the neighbours n-1, n, n+1, == n finds three as uint64,
#   one as int64; a join of 3 with 3 IDs has 9 rows.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check daft==0.7.26

cat >main.py <<'EOF'
import daft
from daft import DataType, col, lit

n = 1179183313482456071
ids = [n - 1, n, n + 1]
signed = daft.from_pydict({"id": ids})
unsigned = signed.with_column("id", col("id").cast(DataType.uint64()))


def found(frame, condition):
    return [i - n for i in frame.where(condition).to_pydict()["id"]]


for name, frame in (("int64", signed), ("uint64", unsigned)):
    print(name, "== n:", found(frame, col("id") == n), "> n:", found(frame, col("id") > n))
    print(name, "is_in([n]):", found(frame, col("id").is_in([n])))
    print(name, "joined with int64:", frame.join(signed, on="id").count_rows(), "rows")
literal = lit(n).cast(DataType.uint64())
print("uint64 == n as uint64:", found(unsigned, col("id") == literal))
EOF
cat >want <<'EOF'
int64 == n: [0] > n: [1]
int64 is_in([n]): [0]
int64 joined with int64: 3 rows
uint64 == n: [-1, 0, 1] > n: []
uint64 is_in([n]): [-1, 0, 1]
uint64 joined with int64: 9 rows
uint64 == n as uint64: [0]
EOF

v/bin/python main.py >got 2>log
cat got
diff want got >&2 || { echo "daft-unsigned-ids-equal-their-neighbours: no longer holds" >&2; exit 1; }
