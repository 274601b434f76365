#!/bin/sh
# TanStack Table: the alphanumeric sort leaves neighbouring IDs as they were.
#
# Package: @tanstack/table-core 9.3.1 (npm).
# Guess: a sort for mixed digits and letters compares runs of digits by length
#   and then as text, or as text.
# Behaviour: runs of digits are compared as numbers, so IDs of one double are
#   equal and keep their order; the table shows them unsorted, both ways. In hex
#   and base32 texts, runs of digits are numbers too: time order is lost. The
#   function text sorts both right.
# Seen 2026-11-28: ...074, ...072, ...071 stay as they are; 0a9f00 comes before
#   0a10b2, which is its order as a number, not as a text.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	@tanstack/table-core@9.3.1 >npm.log

cat >main.mjs <<'EOF'
import { sortFns } from '@tanstack/table-core'

const sorted = (texts, name) =>
  [...texts].sort((a, b) => sortFns[name]({ getValue: () => a }, { getValue: () => b }, 'id')).join(' ')
for (const name of ['alphanumeric', 'text']) {
  console.log(name, sorted(['1179183313482456074', '1179183313482456072', '1179183313482456071'], name))
  console.log(name, sorted(['order_0a9f00', 'order_0a10b2', 'order_0a1c00'], name))
}
EOF
cat >want <<'EOF'
alphanumeric 1179183313482456074 1179183313482456072 1179183313482456071
alphanumeric order_0a1c00 order_0a9f00 order_0a10b2
text 1179183313482456071 1179183313482456072 1179183313482456074
text order_0a10b2 order_0a1c00 order_0a9f00
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "tanstack-table-leaves-neighbouring-ids-unsorted: no longer holds" >&2; exit 1; }
