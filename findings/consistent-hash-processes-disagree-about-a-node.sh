#!/bin/sh
# consistent-hash (npm): two processes with the same nodes send an ID to
# different ones, also with "uniform".
#
# Package: consistent-hash 1.2.2 (npm).
# Guess: the points of a node come from a hash of its name, so processes with
#   the same nodes agree. If not by default, which the README calls random, then
#   with "uniform", which it calls reproducible. A fifth node takes a fifth of
#   the IDs from the others.
# Behaviour: by default each process draws the points by Math.random. With
#   "uniform" they depend on the order of add, and on when it was called: nodes
#   that are added later have a ring of their own over the first. So a process
#   to which the fifth node was added disagrees with one that started with five,
#   and the node has half of its share there.
# Seen 2026-11-29: of 10,000 IDs two processes with four nodes agree about some
#   2,500 by default and about all with "uniform"; after a fifth about 4,594,
#   and about 1,943 if the five were added in the other order. A start with five
#   nodes instead of four moves 4,177.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error consistent-hash@1.2.2 >npm.log

cat >main.cjs <<'EOF'
const ConsistentHash = require('consistent-hash')

const ids = Array.from({ length: 10000 }, (_, i) => String(1179183313482456071n + (BigInt(i) << 22n)))

function ring(nodes, options) {
  const made = new ConsistentHash(options)
  for (const node of nodes) made.add(node)
  return made
}

function agree(one, other) {
  return ids.filter((id) => one.get(id) === other.get(id)).length
}

const random = agree(ring('abcd'), ring('abcd'))
console.error(`random: ${random} of 10000`)
console.log(`random, four nodes each: ${random < 5000 ? 'most' : 'not most'} IDs at another node`)

const uniform = { distribution: 'uniform' }
const grown = ring('abcd', uniform)
console.log(`uniform, four nodes each: ${agree(grown, ring('abcd', uniform))} at the same`)
console.log(`uniform, four and five nodes: ${agree(grown, ring('abcde', uniform))} at the same`)
grown.add('e')
console.log(`uniform, fifth node added to one: ${agree(grown, ring('abcde', uniform))} at the same`)
console.log(`uniform, share of the fifth node: ${ids.filter((id) => grown.get(id) === 'e').length}`)
console.log(`uniform, other order: ${agree(ring('abcde', uniform), ring('edcba', uniform))} at the same`)
EOF
cat >want <<'EOF'
random, four nodes each: most IDs at another node
uniform, four nodes each: 10000 at the same
uniform, four and five nodes: 5823 at the same
uniform, fifth node added to one: 4594 at the same
uniform, share of the fifth node: 1229
uniform, other order: 1943 at the same
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "consistent-hash-processes-disagree-about-a-node: no longer holds" >&2; exit 1; }
