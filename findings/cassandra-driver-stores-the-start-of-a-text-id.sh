#!/bin/sh
# cassandra-driver (npm): a bigint column takes the text "12e5" as 12, and 2^64
# + 5 as 5.
#
# Package: cassandra-driver 4.10.0 (npm).
# Guess: a string for a bigint column must be an integer in range; a bigint of
#   JavaScript is the natural type.
# Behaviour: a string is read digit by digit without a check: it stops at what
#   is not a digit, or wraps at 64 bits. A hex ID with leading digits and a
#   128-bit ID are stored as other IDs. A bigint is refused, a number rounded.
# Seen 2026-11-28: '18446744073709551621' is stored as 5, '12e5' as 12; the
#   bigint 1179183313482456071n is a TypeError.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	cassandra-driver@4.10.0 >npm.log

cat >main.mjs <<'EOF'
import Encoder from 'cassandra-driver/lib/encoder.js'
import cassandra from 'cassandra-driver'

const encoder = new Encoder(4, {})
const type = { code: cassandra.types.dataTypes.bigint }
for (const id of ['1179183313482456071', '18446744073709551621', '12e5', 1179183313482456071n, Number('1179183313482456071')])
  try {
    console.log(typeof id, id, '->', String(encoder.decode(encoder.encode(id, type), type)))
  } catch (error) {
    console.log(typeof id, id, '->', error.constructor.name)
  }
EOF
cat >want <<'EOF'
string 1179183313482456071 -> 1179183313482456071
string 18446744073709551621 -> 5
string 12e5 -> 12
bigint 1179183313482456071n -> TypeError
number 1179183313482456000 -> 1179183313482456064
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "cassandra-driver-stores-the-start-of-a-text-id: no longer holds" >&2; exit 1; }
