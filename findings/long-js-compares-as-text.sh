#!/bin/sh
# long (npm): the operators < and > on two Long values compare texts.
#
# Packages: long 5.3.2, bson 7.3.4 (npm); Long is what protobufjs, gRPC
#   loaders and MongoDB give for 64-bit integers.
# Guess: the operator < compares two Longs by value, or never holds, as for
#   objects without a value.
# Behaviour: a Long has no numeric valueOf, so the operators compare its
#   decimal text from left to right. Subtraction is numeric: a - b is negative
#   while a < b is false. It is right as long as all IDs have 19 digits.
# Seen 2026-11-28: 999 < 1000 is false and 999 - 1000 is -1, in both packages;
#   sorted by < the order is 1000, 999.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	long@5.3.2 bson@7.3.4 >npm.log

cat >main.cjs <<'EOF'
const Plain = require('long')
const { Long } = require('bson')
for (const [name, L] of [['long', Plain.default ?? Plain], ['bson', Long]]) {
  const a = L.fromString('999')
  const b = L.fromString('1000')
  const sorted = [b, a].sort((x, y) => (x < y ? -1 : 1)).join(' ')
  console.log(name, '999 < 1000:', a < b, '| 999 - 1000:', a - b, '| sorted:', sorted, '| lessThan:', a.lessThan(b))
}
EOF
cat >want <<'EOF'
long 999 < 1000: false | 999 - 1000: -1 | sorted: 1000 999 | lessThan: true
bson 999 < 1000: false | 999 - 1000: -1 | sorted: 1000 999 | lessThan: true
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "long-js-compares-as-text: no longer holds" >&2; exit 1; }
