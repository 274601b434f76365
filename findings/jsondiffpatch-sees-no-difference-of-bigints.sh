#!/bin/sh
# jsondiffpatch: two different bigints have no difference.
#
# Package: jsondiffpatch 0.7.7 (npm).
# Guess: diff of two bigints is a change, as of two numbers or strings; or an
#   error for a type that JSON does not have.
# Behaviour: the result is undefined, which means equal, for every pair of
#   bigints, deep in objects too. An audit log or a patch made from it leaves
#   out changed IDs.
# Seen 2026-11-28: diff({id: 5n}, {id: 7n}) is undefined; with strings
#   [["5","7"]]; a change beside it is found.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	jsondiffpatch@0.7.7 >npm.log

cat >main.mjs <<'EOF'
import { diff } from 'jsondiffpatch'

const show = (a, b) => JSON.stringify(diff(a, b)) ?? 'undefined: no difference'
console.log('bigint:', show({ id: 1179183313482456071n }, { id: 1179183313482456072n }))
console.log('bigint:', show({ id: 5n, n: 1 }, { id: 7n, n: 2 }))
console.log('string:', show({ id: '5' }, { id: '7' }))
console.log('number:', show({ id: 5 }, { id: 7 }))
EOF
cat >want <<'EOF'
bigint: undefined: no difference
bigint: {"n":[1,2]}
string: {"id":["5","7"]}
number: {"id":[5,7]}
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "jsondiffpatch-sees-no-difference-of-bigints: no longer holds" >&2; exit 1; }
