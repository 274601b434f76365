#!/bin/sh
# FlexBuffers (JavaScript): a map with a 64-bit ID and a text cannot be read,
# and a small number beside the ID is a bigint.
#
# Packages: flatbuffers 25.12.19 (PyPI, the writer), flatbuffers 25.9.23 (npm,
#   the reader).
# Guess: the type of a field depends on its own value: an ID beyond 2^53 is a
#   bigint, a count of 5 a number, a text a text.
# Behaviour: all slots of a map or a list are as wide as the widest, and a slot
#   of 64 bits is read as a bigint. So 5 is 5n as soon as an ID, or a time in
#   milliseconds, stands beside it. The slot of a text, a list or a map holds an
#   offset, and the reader adds a number to this bigint: a TypeError. The field
#   cannot be read by get() either. Python reads all of them.
# Seen 2026-11-29: {count: 5} has the number 5, {count: 5, id} the bigint 5n; a
#   name, a list or a map beside the ID is "Cannot mix BigInt and other types".
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check flatbuffers==25.12.19
npm install --no-audit --no-fund --ignore-scripts --loglevel=error flatbuffers@25.9.23 >npm.log

cat >main.py <<'EOF'
from flatbuffers import flexbuffers

id = 1179183313482456071
for value in (
    {"count": 5, "name": "a"},
    {"count": 5, "id": id},
    {"name": "a", "id": id},
    {"tags": ["a"], "id": id},
    {"name": "a", "at": 1795817000000},
):
    data = flexbuffers.Dumps(value)
    assert flexbuffers.Loads(data) == value
    print(data.hex())
EOF
cat >main.mjs <<'EOF'
import { toObject, toReference } from 'flatbuffers/mjs/flexbuffers.js'
import { readFileSync } from 'node:fs'

for (const line of readFileSync('written', 'utf8').trim().split('\n')) {
  const buffer = new Uint8Array(Buffer.from(line, 'hex')).buffer
  let value
  try {
    value = toObject(buffer)
  } catch (error) {
    value = `${error.name}: ${error.message}`
  }
  console.log(toReference(buffer).length(), 'fields:', value)
}
EOF
cat >want <<'EOF'
2 fields: { count: 5, name: 'a' }
2 fields: { count: 5n, id: 1179183313482456071n }
2 fields: TypeError: Cannot mix BigInt and other types, use explicit conversions
2 fields: TypeError: Cannot mix BigInt and other types, use explicit conversions
2 fields: TypeError: Cannot mix BigInt and other types, use explicit conversions
EOF

v/bin/python main.py >written
node main.mjs >got
cat got
diff want got >&2 || { echo "flexbuffers-js-cannot-read-text-beside-an-id: no longer holds" >&2; exit 1; }
