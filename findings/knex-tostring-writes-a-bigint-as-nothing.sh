#!/bin/sh
# knex: toString() of a PostgreSQL query writes a bigint as ''.
#
# Packages: knex 3.3.0, pg 8.23.1 (npm).
# Guess: toString() shows the digits, as the MySQL client of the same package
#   does; the bound query and the text mean the same.
# Behaviour: a bigint becomes an empty string in toString(), in where,
#   whereIn, insert and raw. The query itself is right, so that only scripts,
#   migrations and logs made of the text are wrong: the row they insert or
#   look for has the ID ''.
# Seen 2026-11-28: pg: where "id" = '', mysql2: where `id` =
#   '1179183313482456071'; the bindings hold the ID in both.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	knex@3.3.0 pg@8.23.1 >npm.log

cat >main.cjs <<'EOF'
const knex = require('knex')
const id = 1179183313482456071n
for (const client of ['pg', 'mysql2']) {
  const db = knex({ client })
  const query = db('orders').where({ id })
  console.log(client, query.toString(), '| bound:', query.toSQL().bindings)
  console.log(client, db('orders').insert({ id }).toString())
}
EOF
cat >want <<'EOF'
pg select * from "orders" where "id" = '' | bound: [ 1179183313482456071n ]
pg insert into "orders" ("id") values ('')
mysql2 select * from `orders` where `id` = '1179183313482456071' | bound: [ 1179183313482456071n ]
mysql2 insert into `orders` (`id`) values ('1179183313482456071')
EOF

node main.cjs 2>err.log >got
cat got
diff want got >&2 || { echo "knex-tostring-writes-a-bigint-as-nothing: no longer holds" >&2; exit 1; }
