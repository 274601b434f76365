#!/bin/sh
# FlexSearch: a search for an ID finds others, made of the same groups of three
# digits.
#
# Package: flexsearch 0.8.212 (npm), default options and tokenize: "forward".
# Guess: a run of digits is one term. A search for a whole ID finds the document
#   that has it, and with "forward" those that begin with it.
# Behaviour: a run of digits is cut into groups of three, from the left, and
#   each is a term of its own, in any order. 123456789 finds 789456123. The last
#   group of a 19-digit ID has one digit; with "forward" each group that begins
#   with this digit answers it, so the search finds most IDs with the same
#   leading digits. With the encoder Exact only the ID is found.
# Seen 2026-11-29: of 1,000 IDs in a row 161 find others too, up to 108, and
#   the first result is another ID for 81; with "forward" 595, up to 935, and
#   574; with Exact none.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error flexsearch@0.8.212 >npm.log

cat >main.mjs <<'EOF'
import flexsearch from 'flexsearch'

const { Charset, Index } = flexsearch
const few = new Index()
few.add('other', 'order 789456123')
console.log('123456789 finds 789456123:', few.search('123456789').length > 0)

const ids = Array.from({ length: 1000 }, (_, i) => String(1179183313482456071n + BigInt(i)))
for (const [name, options] of [
  ['default', {}],
  ['forward', { tokenize: 'forward' }],
  ['Exact', { encoder: Charset.Exact }],
]) {
  const index = new Index(options)
  ids.forEach((id, i) => index.add(i, id))
  const found = ids.map((id) => index.search(id, { limit: 1000 }).length)
  const more = found.filter((n) => n > 1).length
  const first = ids.filter((id, i) => index.search(id)[0] !== i).length
  const most = Math.max(...found) - 1
  console.log(`${name}: ${more} of 1000 find others, up to ${most}; the first is another for ${first}`)
}
EOF
cat >want <<'EOF'
123456789 finds 789456123: true
default: 161 of 1000 find others, up to 108; the first is another for 81
forward: 595 of 1000 find others, up to 935; the first is another for 574
Exact: 0 of 1000 find others, up to 0; the first is another for 0
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "flexsearch-finds-other-ids-of-the-same-digits: no longer holds" >&2; exit 1; }
