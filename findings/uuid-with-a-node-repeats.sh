#!/bin/sh
# uuid (npm): v1({ node }) and v6({ node }) repeat IDs within one process.
#
# Package: uuid 14.0.3 (npm).
# Guess: the option sets the node of the process, as RFC 9562 has it, and the
#   IDs of a millisecond are still counted apart, as without options.
# Behaviour: with any option the counter of the millisecond stays 0, and 14
#   random bits are all that tells the IDs of a millisecond apart. With node
#   and clockseq nothing does: the process makes one ID a millisecond, as often
#   as it is asked. Without options all are distinct.
# Seen 2026-11-29: of 100,000 with a node 98,333 (v1) and 99,047 (v6) are
#   distinct; with clockseq too, of 20,000 there were 75.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	uuid@14.0.3 >npm.log

cat >main.mjs <<'EOF'
import { v1, v6 } from 'uuid'

const node = [0x02, 0, 0, 0, 0, 7]
const count = 100000
for (const [name, make] of Object.entries({
  'v1()': () => v1(),
  'v6()': () => v6(),
  'v1({ node })': () => v1({ node }),
  'v6({ node })': () => v6({ node }),
  'v6({ node, clockseq })': () => v6({ node, clockseq: 5 }),
})) {
  const ids = new Set()
  const start = Date.now()
  for (let i = 0; i < count; i++) ids.add(make())
  const ms = Date.now() - start + 1
  const seen = ids.size === count ? 'all distinct' : ids.size <= ms ? 'at most one a millisecond' : 'repeats'
  console.log(`${name}: ${seen}`)
  console.error(`${name}: ${ids.size} of ${count} in ${ms} ms`)
}
EOF
cat >want <<'EOF'
v1(): all distinct
v6(): all distinct
v1({ node }): repeats
v6({ node }): repeats
v6({ node, clockseq }): at most one a millisecond
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "uuid-with-a-node-repeats: no longer holds" >&2; exit 1; }
