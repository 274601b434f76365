#!/bin/sh
# flat (npm): unflatten of an object keyed by IDs gives an array without
# elements.
#
# Package: flat 6.0.1 (npm).
# Guess: unflatten(flatten(x)) is x for an object whose keys are decimal IDs;
#   if they are taken for an index, that happens for small numbers.
# Behaviour: a part that is a number makes an array, and the part is converted
#   to a number first. The ID becomes the rounded property name of an array of
#   length 0, and JSON.stringify writes []. Neighbours share one name: the
#   last one wins.
# Seen 2026-11-28: two entries go in, {"stock":[]} comes out; the one key left
#   is 1179183313482456000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	flat@6.0.1 >npm.log

cat >main.mjs <<'EOF'
import { flatten, unflatten } from 'flat'

const stock = { '1179183313482456071': { n: 1 }, '1179183313482456072': { n: 2 } }
const flat = flatten({ stock })
const back = unflatten(flat)
console.log('flat  ', JSON.stringify(flat))
console.log('back  ', JSON.stringify(back), 'length', back.stock.length, 'keys', Object.keys(back.stock).join())
console.log('object', JSON.stringify(unflatten(flat, { object: true })))
EOF
cat >want <<'EOF'
flat   {"stock.1179183313482456071.n":1,"stock.1179183313482456072.n":2}
back   {"stock":[]} length 0 keys 1179183313482456000
object {"stock":{"1179183313482456071":{"n":1},"1179183313482456072":{"n":2}}}
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "flat-unflatten-loses-what-an-id-keys: no longer holds" >&2; exit 1; }
