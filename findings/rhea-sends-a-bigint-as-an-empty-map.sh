#!/bin/sh
# rhea (AMQP 1.0): a bigint is sent as an empty map, and a received 64-bit ID is
# a Buffer.
#
# Package: rhea 3.0.5 (npm), the library under several vendors' clients.
# Guess: a bigint is AMQP's long in both directions, or is refused.
# Behaviour: a bigint is taken for an object without entries: {} arrives, with
#   no error, as a body and as a property. A long beyond 2^53 is decoded as a
#   Buffer of its eight bytes, a smaller one as a number. wrap_long of a Buffer
#   sends one.
# Seen 2026-11-28: the body 1179183313482456071n arrives as {}; the same long
#   from another sender is a Buffer, 1099511627781 a number.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	rhea@3.0.5 >npm.log

cat >main.mjs <<'EOF'
import rhea from 'rhea'

const pass = (message) => rhea.message.decode(rhea.message.encode(message))
const long = (hex) => rhea.types.wrap_long(Buffer.from(hex, 'hex'))

console.log('bigint body    ', pass({ body: 1179183313482456071n }).body)
console.log('bigint property', pass({ body: '', application_properties: { id: 1179183313482456071n } }).application_properties)
for (const hex of ['0000010000000005', '105d4cf9dd309c07'])
  console.log('long', hex, pass({ body: '', application_properties: { id: long(hex) } }).application_properties.id)
EOF
cat >want <<'EOF'
bigint body     {}
bigint property { id: {} }
long 0000010000000005 1099511627781
long 105d4cf9dd309c07 <Buffer 10 5d 4c f9 dd 30 9c 07>
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "rhea-sends-a-bigint-as-an-empty-map: no longer holds" >&2; exit 1; }
