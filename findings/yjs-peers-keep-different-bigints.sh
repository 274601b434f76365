#!/bin/sh
# Yjs: peers hold another bigint than the writer, and no sync mends it.
#
# Package: yjs 13.6.33 (npm).
# Guess: replicas converge: a bigint beyond int64 is refused by set, or arrives
#   as it is.
# Behaviour: set keeps the bigint that it is given, and the update carries its
#   low 64 bits as a signed number. The writer reads the ID; its peers, and the
#   writer after a restart, read another one. Their state vectors are equal, so
#   there is nothing to sync. Of a UUIDv7 as a bigint the random half is left.
# Seen 2026-11-29: writer 9223372036854775813, peer -9223372036854775803; the
#   writer too after a restart; 2^63-1 is the same in both.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	yjs@13.6.33 >npm.log

cat >main.mjs <<'EOF'
import * as Y from 'yjs'

const sync = (from, to) => Y.applyUpdate(to, Y.encodeStateAsUpdate(from, Y.encodeStateVector(to)))
const read = (doc) => doc.getMap('order').get('id')
for (const [name, id] of [
  ['2^63-1', 2n ** 63n - 1n],
  ['2^63+5', 2n ** 63n + 5n],
  ['UUIDv7', 0x019aca0e_5800_7000_8000_00000000002an],
]) {
  const writer = new Y.Doc()
  const peer = new Y.Doc()
  writer.getMap('order').set('id', id)
  for (let i = 0; i < 3; i++) {
    sync(writer, peer)
    sync(peer, writer)
  }
  const restarted = new Y.Doc()
  sync(writer, restarted)
  const same = `${Y.encodeStateVector(writer)}` === `${Y.encodeStateVector(peer)}`
  console.log(`${name}: writer ${read(writer)}, peer ${read(peer)}, same state vector: ${same}`)
  console.log(`${name}: restarted ${read(restarted)}`)
}
EOF
cat >want <<'EOF'
2^63-1: writer 9223372036854775807, peer 9223372036854775807, same state vector: true
2^63-1: restarted 9223372036854775807
2^63+5: writer 9223372036854775813, peer -9223372036854775803, same state vector: true
2^63+5: restarted -9223372036854775803
UUIDv7: writer 2132939895168701943371686634254762026, peer -9223372036854775766, same state vector: true
UUIDv7: restarted -9223372036854775766
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "yjs-peers-keep-different-bigints: no longer holds" >&2; exit 1; }
