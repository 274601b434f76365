#!/bin/sh
# typeorm: find() returns one of two rows whose composite keys of text
# contain "_".
#
# Packages: typeorm 1.1.1, sql.js 1.16.0, reflect-metadata 0.2.2 (npm).
# Guess: find() without any condition returns as many entities as the table
#   has rows.
# Behaviour: rows are grouped by their key columns joined with "_". The keys
#   (order_1, 2) and (order, 1_2) join to one text, so the second row is taken
#   for a repetition of the first and dropped; no error. IDs with a prefix and
#   "_" are such texts.
# Seen 2026-11-28: count() says 2, find() returns 1 entity.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	typeorm@1.1.1 sql.js@1.16.0 reflect-metadata@0.2.2 >npm.log

cat >main.mjs <<'EOF'
import 'reflect-metadata'
import { DataSource, EntitySchema } from 'typeorm'

const Part = new EntitySchema({ name: 'Part', columns: {
  owner: { type: 'text', primary: true },
  id: { type: 'text', primary: true },
} })
const db = new DataSource({ type: 'sqljs', entities: [Part], synchronize: true })
await db.initialize()
const parts = db.getRepository('Part')
await parts.insert([{ owner: 'order_1', id: '2' }, { owner: 'order', id: '1_2' }])
console.log('count', await parts.count())
console.log('find ', JSON.stringify(await parts.find({ order: { owner: 'ASC' } })))
console.log('find order_1:', (await parts.findBy({ owner: 'order_1' })).length,
  '| find order:', (await parts.findBy({ owner: 'order' })).length)
EOF
cat >want <<'EOF'
count 2
find  [{"owner":"order","id":"1_2"}]
find order_1: 1 | find order: 1
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "typeorm-find-returns-one-of-two-rows: no longer holds" >&2; exit 1; }
