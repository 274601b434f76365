#!/bin/sh
# shortuuid: the text of a UUID in JavaScript is Python's text reversed, and is
# read there as another UUID.
#
# Packages: shortuuid 0.1.0 (npm), "compatible with the Python library";
#   shortuuid 1.0.13 (PyPI).
# Guess: a UUID has one text of 22 letters in both: alphabet and length are the
#   same. The alphabet is sorted, so texts of UUIDv7s sort by time.
# Behaviour: the port writes the lowest digit first, as Python did before 1.0,
#   and Python the highest. Each decodes the other's text to a UUID of another
#   value, or refuses it if it is too large; in JavaScript, the texts have no
#   order.
# Seen 2026-11-30: of the texts of 5,000 UUIDv7s, Python reads 3,997 as other
#   UUIDs and refuses 1,003; half of the neighbours are out of order, and none
#   in Python.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check shortuuid==1.0.13
npm install --no-audit --no-fund --ignore-scripts --loglevel=error shortuuid@0.1.0 >npm.log

cat >make.py <<'EOF'
import uuid
from random import Random

random = Random(1)
for n in range(5000):
    low = random.getrandbits(74)
    print(uuid.UUID(int=0x019ACA0E5800 + n << 80 | 7 << 76 | low >> 62 << 64 | 2 << 62 | low & 2**62 - 1))
EOF
cat >main.cjs <<'EOF'
const ShortUUID = require('shortuuid')
const short = new ShortUUID()
const ids = require('fs').readFileSync('ids', 'utf8').trim().split('\n')

for (const id of ids) {
  const text = short.encode(id)
  if (short.decode(text) !== id) throw new Error(id)
  console.log(id, text)
}
EOF
cat >main.py <<'EOF'
import sys
import uuid
from collections import Counter

import shortuuid


def read(id, text):
    try:
        return "right" if shortuuid.decode(text) == id else "another UUID"
    except ValueError:
        return "refused"


rows = [line.split() for line in sys.stdin]
ids, javascript = [uuid.UUID(id) for id, _ in rows], [text for _, text in rows]
python = [shortuuid.encode(id) for id in ids]
print("Python reads JavaScript:", dict(Counter(map(read, ids, javascript))))
print("reversed:", sum(a == b[::-1] for a, b in zip(python, javascript)))
for name, texts in ("Python", python), ("JavaScript", javascript):
    print(f"{name}: {sum(b < a for a, b in zip(texts, texts[1:]))} of 4999 neighbours out of order")
EOF
cat >want <<'EOF'
Python reads JavaScript: {'another UUID': 3997, 'refused': 1003}
reversed: 5000
Python: 0 of 4999 neighbours out of order
JavaScript: 2525 of 4999 neighbours out of order
EOF

v/bin/python make.py >ids
node main.cjs >texts
v/bin/python main.py <texts >got
cat got
diff want got >&2 || { echo "shortuuid-texts-are-reversed-in-javascript: no longer holds" >&2; exit 1; }
