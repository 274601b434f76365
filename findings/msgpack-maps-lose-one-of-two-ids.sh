#!/bin/sh
# @msgpack/msgpack: a map with two neighbouring IDs as keys is decoded with one
# entry.
#
# Packages: @msgpack/msgpack 3.1.3 (the reader), msgpackr 2.1.4 (the writer)
#   (npm).
# Guess: the keys of the object are the digits of the keys in the map, as
#   msgpackr reads them, or an integer key is refused.
# Behaviour: an integer key is decoded as a number, which the reader allows,
#   and becomes the name of a property: neighbours share one name, and the last
#   entry wins. With useBigInt64 the same map is refused.
# Seen 2026-11-28: two entries go in, {"1179183313482456000":"b"} comes out.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	@msgpack/msgpack@3.1.3 msgpackr@2.1.4 >npm.log

cat >main.mjs <<'EOF'
import { decode } from '@msgpack/msgpack'
import { pack, unpack } from 'msgpackr'

const bytes = pack(new Map([[1179183313482456071n, 'a'], [1179183313482456072n, 'b']]))
console.log('msgpackr', unpack(bytes))
console.log('@msgpack/msgpack', decode(bytes))
try {
  console.log(decode(bytes, { useBigInt64: true }))
} catch (error) {
  console.log('useBigInt64:', error.message)
}
EOF
cat >want <<'EOF'
msgpackr { '1179183313482456071': 'a', '1179183313482456072': 'b' }
@msgpack/msgpack { '1179183313482456000': 'b' }
useBigInt64: The type of key must be string or number but bigint
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "msgpack-maps-lose-one-of-two-ids: no longer holds" >&2; exit 1; }
