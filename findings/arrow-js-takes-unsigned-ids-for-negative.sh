#!/bin/sh
# Apache Arrow for JavaScript: an inferred column turns large IDs negative.
#
# Package: apache-arrow 21.2.0 (npm).
# Guess: the type that is inferred for bigints holds them: Uint64 if one is
#   2^63 or more, or an error.
# Behaviour: any array of bigints is Int64 for vectorFromArray and
#   tableFromArrays, and values of 2^63 or more wrap without an error, also
#   into a file. A builder of Int64 wraps them too. A BigUint64Array, or the
#   type Uint64, keeps them.
# Seen 2026-11-28: 2^63 + 5 is -9223372036854775803, also after writing and
#   reading an IPC stream.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error apache-arrow@21.2.0 >npm.log

cat >main.cjs <<'EOF'
const { tableFromArrays, tableFromIPC, tableToIPC, vectorFromArray } = require('apache-arrow')
const id = 2n ** 63n + 5n
const inferred = vectorFromArray([id])
console.log(String(inferred.type), inferred.get(0))
for (const ids of [[id], BigUint64Array.of(id)]) {
  const table = tableFromIPC(tableToIPC(tableFromArrays({ id: ids })))
  console.log(String(table.schema.fields[0].type), table.getChild('id').get(0))
}
EOF
cat >want <<'EOF'
Int64 -9223372036854775803n
Int64 -9223372036854775803n
Uint64 9223372036854775813n
EOF

node main.cjs 2>err.log >got
cat got
diff want got >&2 || { echo "arrow-js-takes-unsigned-ids-for-negative: no longer holds" >&2; exit 1; }
