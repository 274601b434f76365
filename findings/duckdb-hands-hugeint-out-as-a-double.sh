#!/bin/sh
# DuckDB: sum(id) and other HUGEINTs are rounded by df(), fetchnumpy() and COPY
# to Parquet.
#
# Package: duckdb 2.0.1 (PyPI), with pandas 3.1.1, pyarrow 26.0.1.
# Guess: a type that a target lacks becomes an object, a decimal or a text, or
#   is refused, as UHUGEINT is.
# Behaviour: HUGEINT becomes a double in pandas, NumPy and Parquet, without a
#   warning. sum() of BIGINT is a HUGEINT, so the sum of one ID is rounded where
#   the ID itself is exact. fetchall() and Arrow are exact.
# Seen 2026-11-28: sum of 1179183313482456071 alone is 1179183313482456064.0 in
#   df(); 2^127 - 1 and 2^127 - 2 are one value in df() and in Parquet.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check duckdb==2.0.1 pandas==3.1.1 numpy==2.4.6 pyarrow==26.0.1

cat >main.py <<'EOF'
import duckdb
import pyarrow.parquet as pq

one = "SELECT max(id) AS max, sum(id) AS sum FROM (VALUES (1179183313482456071)) t(id)"
two = "SELECT 170141183460469231731687303715884105727::HUGEINT - i AS id FROM range(2) r(i)"

frame = duckdb.sql(one).df()
print("df", frame["max"].dtype, int(frame["max"][0]), frame["sum"].dtype, int(frame["sum"][0]))
print("fetchall", duckdb.sql(one).fetchall())
frame = duckdb.sql(two).df()
print("df", frame["id"].dtype, frame["id"].nunique(), "distinct of 2")
duckdb.sql(f"COPY ({two}) TO 'ids.parquet'")
table = pq.read_table("ids.parquet")
print("Parquet", table["id"].type, len(set(table["id"].to_pylist())), "distinct of 2")
print("Arrow", duckdb.sql("SELECT sum(id) AS id FROM (VALUES (1179183313482456071)) t(id)").to_arrow_table()["id"])
EOF
cat >want <<'EOF'
df int64 1179183313482456071 float64 1179183313482456064
fetchall [(1179183313482456071, 1179183313482456071)]
df float64 1 distinct of 2
Parquet double 1 distinct of 2
Arrow [
  [
    1179183313482456071
  ]
]
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "duckdb-hands-hugeint-out-as-a-double: no longer holds" >&2; exit 1; }
