#!/bin/sh
# lexicographic-integer: integers of 45 bits and more have one key for many, and
# are read back as another one.
#
# Package: lexicographic-integer 1.1.0 (npm).
# Guess: every integer below 2^53 has its own key, in the order of the numbers.
#   The README packs larger ones, up to Number.MAX_VALUE.
# Behaviour: a key has 44 significant bits. From 2^44 on neighbours have one
#   key, at 2^50 128 numbers in a row; unpack gives the smallest of them. What
#   is stored under the key of one ID replaces what is stored under another.
#   Milliseconds since 1970 (41 bits) are exact, microseconds are not.
# Seen 2026-11-30: 1,000 integers in a row have 1,000 keys after 2^43, 501 after
#   2^44, 126 after 2^46, 9 after 2^50 and 3 after 2^52.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	lexicographic-integer@1.1.0 >npm.log

cat >main.cjs <<'EOF'
const lexi = require('lexicographic-integer')

for (const bits of [40, 43, 44, 46, 50, 52]) {
  const keys = new Set()
  let same = 0
  for (let n = 2 ** bits + 1000; n < 2 ** bits + 2000; n++) {
    const key = lexi.pack(n, 'hex')
    keys.add(key)
    if (lexi.unpack(key) === n) same++
  }
  console.log(`2^${bits}: ${keys.size} keys for 1000 integers, ${same} are read back`)
}
const now = 1764300000123456
console.log(`${now} is read back as ${lexi.unpack(lexi.pack(now, 'hex'))}`)
EOF
cat >want <<'EOF'
2^40: 1000 keys for 1000 integers, 1000 are read back
2^43: 1000 keys for 1000 integers, 1000 are read back
2^44: 501 keys for 1000 integers, 500 are read back
2^46: 126 keys for 1000 integers, 125 are read back
2^50: 9 keys for 1000 integers, 8 are read back
2^52: 3 keys for 1000 integers, 2 are read back
1764300000123456 is read back as 1764300000123387
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "lexicographic-integer-packs-many-ids-as-one: no longer holds" >&2; exit 1; }
