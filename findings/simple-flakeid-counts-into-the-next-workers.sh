#!/bin/sh
# simple-flakeid: with fewer bits for the sequence, a worker makes the IDs of
# the next ones.
#
# Package: simple-flakeid 0.0.5 (npm), yitter's algorithm for JavaScript.
# Guess: seqBitLength 3 to 21 are allowed, as the type's comments say, and
#   maxSeqNumber is 2^seqBitLength - 1 when it is not set. Each worker has the
#   sequences 5 to 7 of 3 bits, and borrows later milliseconds when they are
#   used up.
# Behaviour: the default of maxSeqNumber is 63, whatever seqBitLength is. The
#   sequence is added, not masked: with 3 bits, worker 1 counts through the
#   bits of workers 2 to 8. With 10 bits only 59 IDs of a millisecond are used.
# Seen 2026-11-29: with 3 bits, 20,000 IDs of worker 1 read as those of workers
#   1 to 8; 40,000 IDs of workers 1 and 2, made side by side, have some 17,000
#   repeats. With the default of 6 bits, or maxSeqNumber 7, none.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	simple-flakeid@0.0.5 >npm.log

cat >main.cjs <<'EOF'
const { SnowflakeIdv1 } = require('simple-flakeid')

const all = [{ seqBitLength: 3 }, { seqBitLength: 4 }, { seqBitLength: 5 }, {}, { seqBitLength: 3, maxSeqNumber: 7 }]
for (const options of all) {
  const [one, other] = [1, 2].map((workerId) => new SnowflakeIdv1({ workerId, ...options }))
  const ids = new Set()
  const workers = new Set()
  for (let i = 0; i < 20000; i++) {
    const id = one.NextBigId()
    ids.add(id).add(other.NextBigId())
    workers.add(Number((id >> BigInt(options.seqBitLength ?? 6)) & 63n))
  }
  const name = JSON.stringify(options)
  const inIDs = [...workers].sort((a, b) => a - b)
  console.log(`${name}: worker 1 is ${inIDs}, ${ids.size === 40000 ? 'all distinct' : 'repeats'}`)
  console.error(`${name}: ${40000 - ids.size} of 40000 repeated`)
}
EOF
cat >want <<'EOF'
{"seqBitLength":3}: worker 1 is 1,2,3,4,5,6,7,8, repeats
{"seqBitLength":4}: worker 1 is 1,2,3,4, repeats
{"seqBitLength":5}: worker 1 is 1,2, repeats
{}: worker 1 is 1, all distinct
{"seqBitLength":3,"maxSeqNumber":7}: worker 1 is 1, all distinct
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "simple-flakeid-counts-into-the-next-workers: no longer holds" >&2; exit 1; }
