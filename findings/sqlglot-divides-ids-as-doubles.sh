#!/bin/sh
# SQLGlot: MySQL's DIV becomes a division of doubles in SQLite, T-SQL and Trino.
#
# Package: sqlglot 30.30.0 (PyPI); SQLite of Python's sqlite3.
# Guess: an integer division is translated to an integer division. SQLite's /
#   of two integers is one.
# Behaviour: the translation casts the ID to REAL (FLOAT, DOUBLE) before it
#   divides, and the quotient back. Above 2^53 the last digits of the quotient
#   are wrong: a bucket or shard number can be another one.
# Seen 2026-11-28: 1179183313482456071 DIV 10 is 117918331348245607; the
#   translated query answers 117918331348245600 in SQLite.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check sqlglot==30.30.0

cat >main.py <<'EOF'
import sqlite3

import sqlglot

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE orders (id INTEGER)")
db.executemany("INSERT INTO orders VALUES (?)", [(1179183313482456071,), (1179183313482456079,)])
mysql = "SELECT id DIV 10 FROM orders"
for dialect in ("sqlite", "tsql", "trino", "postgres", "duckdb"):
    print(dialect + ":", sqlglot.transpile(mysql, read="mysql", write=dialect)[0])
translated = sqlglot.transpile(mysql, read="mysql", write="sqlite")[0]
print("exact     ", [row[0] for row in db.execute("SELECT id / 10 FROM orders")])
print("translated", [row[0] for row in db.execute(translated)])
EOF
cat >want <<'EOF'
sqlite: SELECT CAST(CAST(id AS REAL) / 10 AS INTEGER) FROM orders
tsql: SELECT CAST(CAST(id AS FLOAT) / 10 AS BIGINT) FROM orders
trino: SELECT CAST(TRUNCATE(CAST(id AS DOUBLE) / 10) AS BIGINT) FROM orders
postgres: SELECT DIV(id, 10) FROM orders
duckdb: SELECT id // 10 FROM orders
exact      [117918331348245607, 117918331348245607]
translated [117918331348245600, 117918331348245600]
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "sqlglot-divides-ids-as-doubles: no longer holds" >&2; exit 1; }
