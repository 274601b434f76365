#!/bin/sh
# pg-mem: neighbouring IDs collide in a bigint primary key.
#
# Package: pg-mem 3.0.14 (npm), a PostgreSQL in memory for tests.
# Guess: a bigint column holds 64 bits; at most the result is a number, as
#   the whole point is that a test behaves as the database does.
# Behaviour: the parser makes a double of an integer, and the column holds
#   doubles. So the second of two neighbours is refused as a duplicate, a
#   query for one ID finds the rows of the others, and a cast to text shows
#   rounded digits.
# Seen 2026-11-28: "duplicate key value" for n-1 after n; without the key,
#   id = n finds both rows, and id::text is 1179183313482456000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error pg-mem@3.0.14 >npm.log

cat >main.cjs <<'EOF'
const { newDb } = require('pg-mem')
const db = newDb().public
db.none('create table orders (id bigint primary key); create table plain (id bigint)')
db.none('insert into orders values (1179183313482456071)')
try {
  db.none('insert into orders values (1179183313482456070)')
  console.log('stored')
} catch (e) {
  console.log(/duplicate key value/.test(e.message) ? 'duplicate key value' : e.message)
}
db.none('insert into plain values (1179183313482456071), (1179183313482456070)')
console.log(db.many('select id::text from plain where id = 1179183313482456071'))
EOF
cat >want <<'EOF'
duplicate key value
[ { id: '1179183313482456000' }, { id: '1179183313482456000' } ]
EOF

node main.cjs 2>err.log >got
cat got
diff want got >&2 || { echo "pg-mem-neighbouring-ids-collide: no longer holds" >&2; exit 1; }
