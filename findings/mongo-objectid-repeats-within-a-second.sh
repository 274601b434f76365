#!/bin/sh
# mongo-objectid: one process repeats ObjectIDs within a second.
#
# Packages: mongo-objectid 1.2.2, bson-objectid 2.0.4 (npm).
# Guess: the last three bytes count, as MongoDB specifies and the README
#   promises ("impossibility to create similar entries on fast generation"):
#   16,777,216 IDs a second without a repeat, in the order in which they were
#   made.
# Behaviour: each new ObjectId draws a random counter. The IDs of a process in
#   one second differ in these 24 random bits alone, so among 5,000 a repeat is
#   as likely as not, and half of all neighbours are out of order.
# Seen 2026-11-29: 99,725 of 100,000 are distinct; with bson-objectid all, and
#   in order.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	mongo-objectid@1.2.2 bson-objectid@2.0.4 >npm.log

cat >main.cjs <<'EOF'
const Mongo = require('mongo-objectid')
const Bson = require('bson-objectid')

const count = 100000
for (const [name, make] of Object.entries({
  'bson-objectid': () => new Bson().toHexString(),
  'mongo-objectid': () => new Mongo().toString(),
})) {
  const ids = Array.from({ length: count }, make)
  const distinct = new Set(ids).size
  const down = ids.filter((id, i) => i > 0 && id < ids[i - 1]).length
  const order = down < 5 ? 'in order' : down > 40000 && down < 60000 ? 'half out of order' : down
  console.log(`${name}: ${distinct === count ? 'all distinct' : 'repeats'}, ${order}`)
  console.error(`${name}: ${distinct} of ${count} distinct, ${down} out of order`)
}
EOF
cat >want <<'EOF'
bson-objectid: all distinct, in order
mongo-objectid: repeats, half out of order
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "mongo-objectid-repeats-within-a-second: no longer holds" >&2; exit 1; }
