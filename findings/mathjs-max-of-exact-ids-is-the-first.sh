#!/bin/sh
# mathjs: max, sort and setDistinct take IDs for equal that JavaScript tells
# apart.
#
# Package: mathjs 15.2.0 (npm).
# Guess: numbers below 2^53 are exact. == is documented to have a tolerance, for
#   0.1 + 0.2; max, sort and sets work on what they are given.
# Behaviour: all of them compare with the relative tolerance of 1e-12, so a
#   number of 13 digits or more is equal to its neighbours, one of 16 digits to
#   thousands of them. max gives the first of what is near, sort leaves it as it
#   was, and setDistinct and setDifference drop it. Milliseconds since 1970 have
#   13 digits. With a relTol of 1e-17 all are exact.
# Seen 2026-11-29: max(n, n+999) of a 16-digit n is n, setDistinct of 1,000 IDs
#   in a row keeps one, and 1795824000000 == 1795824000001 is true.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	mathjs@15.2.0 >npm.log

cat >main.mjs <<'EOF'
import { all, create } from 'mathjs'

function show(name, math, ids) {
  const n = ids[0]
  const offset = (id) => `n+${id - n}`
  console.log(`${name}: max(n, n+999) is ${offset(math.max(n, ids[999]))}`)
  console.log(`  setDistinct of 1000 keeps ${math.setDistinct(ids).length}`)
  console.log(`  setDifference of 1000 and n keeps ${math.setDifference(ids, [n]).length}`)
  console.log(`  sort of n+2, n+1, n: ${math.sort([ids[2], ids[1], n]).map(offset).join(', ')}`)
}

const math = create(all)
const n = 2 ** 52 + 1
const ids = Array.from({ length: 1000 }, (_, i) => n + i)
show('default', math, ids)
show('relTol 1e-17', create(all, { relTol: 1e-17 }), ids)
console.log('JavaScript: max is', `n+${Math.max(n, n + 999) - n}, a Set keeps`, new Set([n, n + 1, n + 2]).size, 'of 3')
console.log('milliseconds:', math.evaluate('1795824000000 == 1795824000001'))
console.log('12 digits:', math.evaluate('179582400000 == 179582400001'))
EOF
cat >want <<'EOF'
default: max(n, n+999) is n+0
  setDistinct of 1000 keeps 1
  setDifference of 1000 and n keeps 0
  sort of n+2, n+1, n: n+2, n+1, n+0
relTol 1e-17: max(n, n+999) is n+999
  setDistinct of 1000 keeps 1000
  setDifference of 1000 and n keeps 999
  sort of n+2, n+1, n: n+0, n+1, n+2
JavaScript: max is n+999, a Set keeps 3 of 3
milliseconds: true
12 digits: false
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "mathjs-max-of-exact-ids-is-the-first: no longer holds" >&2; exit 1; }
