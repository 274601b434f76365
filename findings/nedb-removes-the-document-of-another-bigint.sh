#!/bin/sh
# NeDB: all bigints are equal, so remove by one ID removes another's document.
#
# Package: @seald-io/nedb 4.1.2 (npm), the fork that is maintained.
# Guess: a bigint is refused, as JSON has none, or works in memory.
# Behaviour: insert leaves a field undefined whose value is a bigint, without
#   an error. An update with $set keeps it, but documents that are read show
#   undefined. A query compares two bigints as objects without keys, so any of
#   them equals any other: find and remove by an ID that no document has take
#   those of all IDs.
# Seen 2026-11-28: id is undefined after insert and after $set; remove by 5n
#   removes nothing after insert, and another's document after $set.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error @seald-io/nedb@4.1.2 >npm.log

cat >main.cjs <<'EOF'
const Datastore = require('@seald-io/nedb')
async function main() {
  const db = new Datastore()
  console.log(await db.insertAsync({ _id: 'cup', id: 1179183313482456071n }))
  console.log('removed', await db.removeAsync({ id: 5n }, {}))
  await db.updateAsync({ _id: 'cup' }, { $set: { id: 1179183313482456071n } })
  console.log(await db.findAsync({}))
  console.log('removed', await db.removeAsync({ id: 5n }, {}))
}
main()
EOF
cat >want <<'EOF'
{ _id: 'cup', id: undefined }
removed 0
[ { _id: 'cup', id: undefined } ]
removed 1
EOF

node main.cjs 2>err.log >got
cat got
diff want got >&2 || { echo "nedb-removes-the-document-of-another-bigint: no longer holds" >&2; exit 1; }
