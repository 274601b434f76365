#!/bin/sh
# hyparquet: an ID in a DECIMAL column is a rounded number, the same ID in an
# INT64 column is exact.
#
# Packages: hyparquet 1.33.0 (npm, the reader), duckdb 2.0.1 (PyPI, the writer).
# Guess: a reader that gives INT64 as bigint has an exact form for DECIMAL too.
#   Warehouses write IDs as DECIMAL(38,0).
# Behaviour: each DECIMAL becomes a number, scale 0 included, also one that is
#   stored as INT64 in the file. Neighbouring IDs are equal and a filter by the
#   exact bigint finds no row.
# Seen 2026-11-28: 1179183313482456071n beside 1179183313482456000; of two IDs
#   the DECIMAL columns have one distinct value.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check duckdb==2.0.1
npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	hyparquet@1.33.0 >npm.log

cat >main.py <<'EOF'
import duckdb

duckdb.sql("""COPY (
    SELECT 1179183313482456071 + i AS id, id::DECIMAL(19,0) AS d19, id::DECIMAL(38,0) AS d38,
        (117918331348245607 + i)::DECIMAL(18,0) AS d18 FROM range(2) r(i)
) TO 'ids.parquet'""")
EOF
cat >main.mjs <<'EOF'
import { readFileSync } from 'node:fs'
import { parquetQuery, parquetReadObjects } from 'hyparquet'

const file = Uint8Array.from(readFileSync('ids.parquet')).buffer
const rows = await parquetReadObjects({ file })
for (const name of Object.keys(rows[0]))
  console.log(name, typeof rows[0][name], String(rows[0][name]), new Set(rows.map((row) => row[name])).size, 'distinct')
for (const name of ['id', 'd38'])
  console.log(name, 'equal to the ID:', (await parquetQuery({ file, filter: { [name]: { $eq: 1179183313482456071n } } })).length)
EOF
cat >want <<'EOF'
EOF

v/bin/python main.py && node main.mjs >got
cat got
diff want got >&2 || { echo "hyparquet-rounds-decimals-beside-exact-integers: no longer holds" >&2; exit 1; }
