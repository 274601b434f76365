#!/bin/sh
# fast-json-stringify (Fastify's serializer): type integer rounds an ID that is
# a string.
#
# Package: fast-json-stringify 7.3.10 (npm).
# Guess: a string of digits, as pg returns for bigint, is written as it is, or
#   refused because it is not an integer.
# Behaviour: whatever is not a number or a bigint is converted to a number. A
#   string of 19 digits is written rounded, '12e5' as 1200000. A bigint is
#   written with all digits, and so is the string with type string.
# Seen 2026-11-28: {"id":1179183313482456000} for the string,
#   {"id":1179183313482456071} for the bigint.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	fast-json-stringify@7.3.10 >npm.log

cat >main.mjs <<'EOF'
import build from 'fast-json-stringify'

for (const type of ['integer', 'string']) {
  const stringify = build({ type: 'object', properties: { id: { type } } })
  for (const id of [1179183313482456071n, '1179183313482456071', '12e5'])
    console.log(type.padEnd(7), typeof id, id, '->', stringify({ id }))
}
EOF
cat >want <<'EOF'
integer bigint 1179183313482456071n -> {"id":1179183313482456071}
integer string 1179183313482456071 -> {"id":1179183313482456000}
integer string 12e5 -> {"id":1200000}
string  bigint 1179183313482456071n -> {"id":"1179183313482456071"}
string  string 1179183313482456071 -> {"id":"1179183313482456071"}
string  string 12e5 -> {"id":"12e5"}
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "fast-json-stringify-rounds-text-ids: no longer holds" >&2; exit 1; }
