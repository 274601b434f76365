#!/bin/sh
# protobufjs: a map<int64, …> is decoded with keys of eight raw characters.
#
# Packages: protobufjs 8.8.1, long 5.3.2 (npm).
# Guess: the decoded map has the decimal IDs as its keys, as map<int32, …>
#   has: m["1179183313482456071"] finds the value.
# Behaviour: each 64-bit key is its eight bytes as a string of eight
#   characters; a lookup by the decimal text finds nothing. JSON.stringify of
#   the message shows decimal keys, so that a log looks right.
# Seen 2026-11-28: keys 2a 00 00 00 00 00 00 00 and 07 9c 30 dd f9 4c 5d 10
#   (hex); lookups undefined; JSON decimal.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	protobufjs@8.8.1 long@5.3.2 >npm.log

cat >main.cjs <<'EOF'
const protobuf = require('protobufjs')
const { root } = protobuf.parse(`syntax = "proto3";
  message Stock { map<int64, int32> pieces = 1; map<int32, int32> small = 2; }`)
const Stock = root.lookupType('Stock')
const bytes = Stock.encode(Stock.fromObject({
  pieces: { 42: 1, '1179183313482456071': 2 }, small: { 42: 3 } })).finish()
const got = Stock.decode(bytes)
for (const key of Object.keys(got.pieces)) console.log('key', Buffer.from(key, 'latin1').toString('hex'))
console.log('small[42]', got.small[42], '| pieces[42]', got.pieces[42],
  '| pieces["1179183313482456071"]', got.pieces['1179183313482456071'])
console.log(JSON.stringify(got))
EOF
cat >want <<'EOF'
key 2a00000000000000
key 079c30ddf94c5d10
small[42] 3 | pieces[42] undefined | pieces["1179183313482456071"] undefined
{"pieces":{"42":1,"1179183313482456071":2},"small":{"42":3}}
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "protobufjs-map-keys-are-eight-raw-characters: no longer holds" >&2; exit 1; }
