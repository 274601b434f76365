#!/bin/sh
# AlaSQL: MAX and MIN of a text column have no result.
#
# Package: alasql 4.19.1 (npm).
# Guess: MAX of text IDs is the last one in the order of ORDER BY, as in SQL.
# Behaviour: MAX and MIN compare numbers only. For strings they return
#   undefined, without an error, so that a page that asks for the newest ID
#   starts from the beginning. COUNT and ORDER BY work with the same column.
# Seen 2026-11-28: max and min are undefined for three text IDs of equal
#   length, while ORDER BY id DESC LIMIT 1 finds the newest.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error alasql@4.19.1 >npm.log

cat >main.cjs <<'EOF'
const sql = require('alasql')
sql('create table orders (id string)')
for (const id of ['1179183313482456071', '1179183313482456070', '1179183313482456072']) {
  sql('insert into orders values (?)', [id])
}
console.log(sql('select max(id) as newest, min(id) as oldest, count(id) as n from orders'))
console.log(sql('select id from orders order by id desc limit 1'))
EOF
cat >want <<'EOF'
[ { newest: undefined, oldest: undefined, n: 3 } ]
[ { id: '1179183313482456072' } ]
EOF

node main.cjs 2>err.log >got
cat got
diff want got >&2 || { echo "alasql-max-of-text-ids-is-nothing: no longer holds" >&2; exit 1; }
