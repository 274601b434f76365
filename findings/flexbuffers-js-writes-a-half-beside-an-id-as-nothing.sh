#!/bin/sh
# FlexBuffers (JavaScript): 0.5 beside a 64-bit ID is written as 5e-315.
#
# Packages: flatbuffers 25.9.23 (npm, the writer), flatbuffers 25.12.19 (PyPI,
#   the reader).
# Guess: each value of a map or a list is written with its own type. An ID
#   widens the slots of the others, which changes nothing for them.
# Behaviour: all slots of a map or a list have the width of the widest. A
#   fraction that fits a float of 32 bits is written as one into a slot of 64
#   bits, and what is read is a double near 0. Fractions that need 64 bits, such
#   as 0.1, are right, and so is 0.5 without a large integer beside it. A time
#   in milliseconds is large enough.
# Seen 2026-11-29: {id, ratio: 0.5} is read as 5.222099017e-315 by Python and by
#   JavaScript, {id, ratio: 0.1} and {id: 7, ratio: 0.5} as written.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check flatbuffers==25.12.19
npm install --no-audit --no-fund --ignore-scripts --loglevel=error flatbuffers@25.9.23 >npm.log

cat >main.mjs <<'EOF'
import { encode } from 'flatbuffers/mjs/flexbuffers.js'

for (const value of [
  { id: 7, ratio: 0.5 },
  { id: 1179183313482456071n, ratio: 0.5 },
  { id: 1179183313482456071n, ratio: 0.1 },
  { at: 1795817000000, price: 47.25 },
  [1795817000000, 47.25],
]) {
  console.log(Buffer.from(encode(value)).toString('hex'))
}
EOF
cat >main.py <<'EOF'
import sys

from flatbuffers import flexbuffers

for line in sys.stdin:
    print(flexbuffers.Loads(bytes.fromhex(line)))
EOF
cat >want <<'EOF'
{'id': 7, 'ratio': 0.5}
{'id': 1179183313482456071, 'ratio': 5.222099017e-315}
{'id': 1179183313482456071, 'ratio': 0.1}
{'at': 1795817000000, 'price': 5.49052164e-315}
[1795817000000, 5.49052164e-315]
EOF

node main.mjs >written
v/bin/python main.py <written >got
cat got
diff want got >&2 || { echo "flexbuffers-js-writes-a-half-beside-an-id-as-nothing: no longer holds" >&2; exit 1; }
