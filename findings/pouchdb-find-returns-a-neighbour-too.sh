#!/bin/sh
# PouchDB: find by a number below 2^53 returns the document of a neighbour too.
#
# Packages: pouchdb-core, pouchdb-adapter-memory and pouchdb-find 9.0.0 (npm).
# Guess: integers below 2^53 are exact in JavaScript, so find({ order: n })
#   returns the document with n, $gt those above it, and sort puts them in
#   order.
# Behaviour: an index has numbers as text, of a decimal exponent and the number
#   divided by its power of ten. That quotient is a double between 1 and 10,
#   and from 8 * 10^15 on, a ninth of the numbers below 2^53, neighbours have
#   the same one: they are one key. find does not compare the documents again.
# Seen 2026-11-30: of 20 documents with numbers in a row from 9007199254740900,
#   16 are found together with another one; $gt returns the bound itself. From
#   7 * 10^15 on each is found alone.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	pouchdb-core@9.0.0 pouchdb-adapter-memory@9.0.0 pouchdb-find@9.0.0 >npm.log

cat >main.mjs <<'EOF'
import memory from 'pouchdb-adapter-memory'
import PouchDB from 'pouchdb-core'
import find from 'pouchdb-find'

PouchDB.plugin(memory).plugin(find)
for (const first of [7000000000000000, 9007199254740900]) {
  const db = new PouchDB('orders' + first, { adapter: 'memory' })
  await db.createIndex({ index: { fields: ['order'] } })
  await db.bulkDocs(Array.from({ length: 20 }, (_, i) => ({ _id: 'document' + i, order: first + i })))
  const search = async (order) => (await db.find({ selector: { order } })).docs.map((doc) => doc.order - first)
  const all = []
  for (let i = 0; i < 20; i++) all.push((await search(first + i)).join('+'))
  console.log(`from ${first}: ${all.join(' ')}`)
  console.log(`more than 9: ${(await search({ $gt: first + 9 })).join(' ')}`)
}
EOF
cat >want <<'EOF'
from 7000000000000000: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19
more than 9: 10 11 12 13 14 15 16 17 18 19
from 9007199254740900: 0+1 0+1 2 3+4 3+4 5+6 5+6 7+8 7+8 10+9 10+9 11 12+13 12+13 14+15 14+15 16+17 16+17 18 19
more than 9: 10 9 11 12 13 14 15 16 17 18 19
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "pouchdb-find-returns-a-neighbour-too: no longer holds" >&2; exit 1; }
