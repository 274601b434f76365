#!/bin/sh
# tsid-ts: the decimal, hex and base 62 texts of an ID are those of others.
#
# Package: tsid-ts 0.0.9 (npm).
# Guess: an ID is held as a bigint, so toDecimalString() is what String() of
#   the bigint gives, and fromString(text, 'd') reads it back.
# Behaviour: each division on the way to the text goes through a double, which
#   also loses digits of what is not yet written; only the last digit is safe.
#   Reading adds up a double. toString(), 13 letters in base 32, is made with
#   shifts and is exact in both directions.
# Seen 2026-11-29: 1,000 IDs of one millisecond have 70 decimal, 144 hex and 504
#   base 62 texts. 50 of the decimal ones are right, and of the right decimal
#   texts five are read as their ID.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	tsid-ts@0.0.9 >npm.log

cat >main.cjs <<'EOF'
const { TSID } = require('tsid-ts')

// Node 5, sequences 0 to 999, at 2026-11-29T00:00:00Z.
const first = (BigInt(Date.UTC(2026, 10, 29) - Date.UTC(2020, 0, 1)) << 22n) | (5n << 12n)
const ids = Array.from({ length: 1000 }, (_, sequence) => first + BigInt(sequence))

const right = { d: (id) => id.toString(), X: (id) => id.toString(16).padStart(16, '0').toUpperCase() }
const formats = { toString: 'S', toDecimalString: 'd', toHexString: 'X', toBase62String: 'z' }
for (const [name, format] of Object.entries(formats)) {
  const texts = ids.map((id) => new TSID(id)[name]())
  const back = texts.filter((text, i) => TSID.fromString(text, format).number === ids[i]).length
  console.log(`${name}: ${new Set(texts).size} texts, ${back} read back as their ID`)
  if (!right[format]) continue
  const correct = texts.filter((text, i) => text === right[format](ids[i])).length
  const read = ids.filter((id) => TSID.fromString(right[format](id), format).number === id).length
  console.log(`  right: ${correct}; of 1000 right texts, ${read} read as their ID`)
}
console.log(`${ids[500]} is ${new TSID(ids[500]).toDecimalString()}`)
EOF
cat >want <<'EOF'
toString: 1000 texts, 1000 read back as their ID
toDecimalString: 70 texts, 4 read back as their ID
  right: 50; of 1000 right texts, 5 read as their ID
toHexString: 144 texts, 8 read back as their ID
  right: 128; of 1000 right texts, 8 read as their ID
toBase62String: 504 texts, 8 read back as their ID
914666972774420980 is 914666972774420860
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "tsid-ts-decimal-texts-are-other-ids: no longer holds" >&2; exit 1; }
