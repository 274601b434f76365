#!/bin/sh
# lmdb-js (ordered-binary): a bigint key is read back as a number if a double
# holds it.
#
# Package: ordered-binary 1.6.3 (npm), the key encoding of lmdb.
# Guess: a key is read back with the type that it was stored with.
# Behaviour: bigint and number have one encoding, ordered by value: 5n and 5 are
#   one key. A bigint that a double holds exactly is decoded as a number, the
#   others as bigint. Above 2^60 that is one ID of 256, and each ID of a worker
#   whose low 8 bits are 0; code that adds 1n to a key fails for those only.
# Seen 2026-11-28: of 100,000 keys from 1179183313482456071 on, 390 are
#   numbers.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	ordered-binary@1.6.3 >npm.log

cat >main.mjs <<'EOF'
import { fromBufferKey, toBufferKey } from 'ordered-binary'

const first = 1179183313482456071n
const types = { bigint: 0, number: 0 }
let equal = 0
for (let i = 0n; i < 100000n; i++) {
  const key = fromBufferKey(toBufferKey(first + i))
  types[typeof key]++
  if (BigInt(key) === first + i) equal++
}
console.log(types, 'equal:', equal)
for (const id of [5n, 1179183313482456064n, 1179183313482456065n]) console.log(id, '->', fromBufferKey(toBufferKey(id)))
EOF
cat >want <<'EOF'
{ bigint: 99610, number: 390 } equal: 100000
5n -> 5
1179183313482456064n -> 1179183313482456000
1179183313482456065n -> 1179183313482456065n
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "lmdb-js-returns-one-of-256-bigint-keys-as-a-number: no longer holds" >&2; exit 1; }
