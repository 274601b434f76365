#!/bin/sh
# node-snowflake (npm): a millisecond has two IDs, the second again and again.
#
# Package: node-snowflake 0.0.1 (npm).
# Guess: the sequence counts the IDs of a millisecond to 4,095, as in the
#   Twitter program that it is a clone of.
# Behaviour: the sequence is a variable of the call and starts from the setting
#   each time. The first ID of a millisecond has sequence 0, each later one has
#   1, so the third repeats the second.
# Seen 2026-11-29: of 10,000 IDs made in a loop about 100 are distinct; all have
#   sequence 0 or 1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	node-snowflake@0.0.1 >npm.log

cat >main.cjs <<'EOF'
const { Snowflake } = require('node-snowflake')

const ids = Array.from({ length: 10000 }, () => Snowflake.nextId())
const distinct = new Set(ids).size
console.log('distinct:', distinct < 5000 ? 'less than half' : distinct)
console.error('distinct:', distinct, 'of', ids.length)
console.log('sequences:', [...new Set(ids.map((id) => Number(BigInt(id) & 4095n)))].sort().join(', '))
EOF
cat >want <<'EOF'
distinct: less than half
sequences: 0, 1
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "node-snowflake-repeats-from-the-third-on: no longer holds" >&2; exit 1; }
