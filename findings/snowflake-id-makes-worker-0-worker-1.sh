#!/bin/sh
# snowflake-id, flakeid (npm): worker 0 makes the IDs of worker 1.
#
# Packages: snowflake-id 1.1.0, flakeid 1.0.1 (npm).
# Guess: mid is ten bits, as the README says, so workers 0 to 1023 are told
#   apart; a number that does not fit is refused.
# Behaviour: both take (mid || 1) % 1023 for the worker. Of workers that count
#   from 0, the first two are both 1 and repeat each other's IDs; 1023 is 0.
# Seen 2026-11-29: mid 0 is 1 in the ID and 1023 is 0; of 2,000 IDs of workers
#   0 and 1, made side by side, 1,009 are distinct, and of workers 1 and 2 all.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	snowflake-id@1.1.0 flakeid@1.0.1 >npm.log

cat >main.cjs <<'EOF'
const SnowflakeId = require('snowflake-id').default
const FlakeId = require('flakeid')

const makers = {
  'snowflake-id': (mid) => {
    const maker = new SnowflakeId({ mid })
    return () => maker.generate()
  },
  flakeid: (mid) => {
    const maker = new FlakeId({ mid })
    return () => maker.gen()
  },
}
for (const [name, worker] of Object.entries(makers)) {
  const inID = (mid) => (BigInt(worker(mid)()) >> 12n) & 1023n
  console.log(`${name}: ${[0, 1, 2, 1022, 1023].map((mid) => `${mid} is ${inID(mid)}`).join(', ')}`)
  for (const pair of [[0, 1], [1, 2]]) {
    const [one, other] = pair.map(worker)
    const ids = new Set()
    for (let i = 0; i < 1000; i++) ids.add(one()).add(other())
    console.log(`${name}: workers ${pair.join(' and ')}: ${ids.size === 2000 ? 'all distinct' : 'repeats'}`)
    console.error(`${name}: workers ${pair.join(' and ')}: ${ids.size} of 2000`)
  }
}
EOF
cat >want <<'EOF'
snowflake-id: 0 is 1, 1 is 1, 2 is 2, 1022 is 1022, 1023 is 0
snowflake-id: workers 0 and 1: repeats
snowflake-id: workers 1 and 2: all distinct
flakeid: 0 is 1, 1 is 1, 2 is 2, 1022 is 1022, 1023 is 0
flakeid: workers 0 and 1: repeats
flakeid: workers 1 and 2: all distinct
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "snowflake-id-makes-worker-0-worker-1: no longer holds" >&2; exit 1; }
