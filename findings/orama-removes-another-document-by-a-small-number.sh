#!/bin/sh
# Orama: remove(3) removes the third document, not the one whose ID is "3".
#
# Package: @orama/orama 3.1.18 (npm).
# Guess: remove and removeMultiple take string | number, so a number stands for
#   the ID with this text. IDs of documents are strings: insert refuses others.
# Behaviour: a number up to the count of documents that were ever inserted is
#   the position at which one was inserted; only a larger number is turned into
#   a text. Removing by number works for IDs of ten digits, in tests and with
#   new rows, and takes another document for the small IDs of old ones. The
#   result is true for both.
# Seen 2026-11-29: of the documents "3", "1", "2", remove(3) removes "2"; with
#   10-digit IDs it removes the right one.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error @orama/orama@3.1.18 >npm.log

cat >main.mjs <<'EOF'
import { create, getByID, insert, remove } from '@orama/orama'

for (const ids of [['3', '1', '2'], ['1179183313', '1179183311', '1179183312']]) {
  for (const type of [String, Number]) {
    const db = create({ schema: { name: 'string' } })
    for (const id of ids) {
      await insert(db, { id, name: `document ${id}` })
    }
    const removed = await remove(db, type(ids[0]))
    const left = ids.filter((id) => getByID(db, id) !== undefined)
    console.log(`${ids}: remove of the ${type.name} ${ids[0]} is ${removed} and leaves ${left}`)
  }
}
EOF
cat >want <<'EOF'
3,1,2: remove of the String 3 is true and leaves 1,2
3,1,2: remove of the Number 3 is true and leaves 3,1
1179183313,1179183311,1179183312: remove of the String 1179183313 is true and leaves 1179183311,1179183312
1179183313,1179183311,1179183312: remove of the Number 1179183313 is true and leaves 1179183311,1179183312
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "orama-removes-another-document-by-a-small-number: no longer holds" >&2; exit 1; }
