#!/bin/sh
# qs: a query of 20 IDs is an array, one of 21 an object.
#
# Packages: qs 6.17.1 (npm), a parser of query strings.
# Guess: ids=…&ids=… gives an array however many IDs a caller asks for; a
#   limit, if any, is near the 1,000 parameters.
# Behaviour: arrayLimit is 20 and holds for repeated names and for ids[] too:
#   with 21 the value becomes a plain object with the keys 0 to 20, without
#   length, map or an error. A batch endpoint works until someone asks for one
#   more.
# Seen 2026-11-28: 20 are an array; 21 are an object, length undefined.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	qs@6.17.1 >npm.log

cat >main.cjs <<'EOF'
const qs = require('qs')
for (const name of ['ids', 'ids[]']) {
  for (const n of [20, 21]) {
    const query = Array.from({ length: n }, (_, i) => `${name}=${1179183313482456071n + BigInt(i)}`).join('&')
    const { ids } = qs.parse(query)
    console.log(name, n, Array.isArray(ids) ? 'array' : typeof ids, 'length', ids.length, 'keys', Object.keys(ids).length)
  }
}
EOF
cat >want <<'EOF'
ids 20 array length 20 keys 20
ids 21 object length undefined keys 21
ids[] 20 array length 20 keys 20
ids[] 21 object length undefined keys 21
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "qs-21-ids-are-no-array: no longer holds" >&2; exit 1; }
