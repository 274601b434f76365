#!/bin/sh
# lokijs: $gt on IDs that are strings compares them as doubles and skips
# rows.
#
# Package: lokijs 1.5.12 (npm).
# Guess: IDs stored as strings are compared as strings: "…071" is greater than
#   "…070".
# Behaviour: when both strings look like numbers, order is by Number().
#   Neighbours are equal then, so the next page after an ID leaves out up to
#   255 rows that follow it. Equality is exact, which hides it.
# Seen 2026-11-28: three rows are above …070, $gt finds one of them; one row
#   is at or below it, $lte finds three.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	lokijs@1.5.12 >npm.log

cat >main.cjs <<'EOF'
const Loki = require('lokijs')
const rows = new Loki('memory').addCollection('rows')
for (const end of ['070', '071', '072', '200']) rows.insert({ id: '1179183313482456' + end })
const ids = (q) => rows.find({ id: q }).map((r) => r.id.slice(-3)).join(' ')
const last = '1179183313482456070'
console.log('$gt …070: ', ids({ $gt: last }))
console.log('$lte …070:', ids({ $lte: last }))
console.log('$eq …071: ', ids({ $eq: '1179183313482456071' }))
EOF
cat >want <<'EOF'
$gt …070:  200
$lte …070: 070 071 072
$eq …071:  071
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "lokijs-pages-skip-text-ids: no longer holds" >&2; exit 1; }
