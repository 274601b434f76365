#!/bin/sh
# jmespath (npm): max of KSUIDs is not the last one of sort, and max_by has no
# result.
#
# Packages: jmespath 0.16.0 (npm), jmespath 1.1.0 (PyPI) for comparison.
# Guess: the specification orders strings by code points, so max(@) is
#   sort(@)[-1], max_by finds the same, and both languages agree. A KSUID is
#   made so that the newest is the largest.
# Behaviour: sort compares code units, max and min compare with localeCompare,
#   in which a lower case letter stands beside its upper case one. max_by and
#   min_by compare a string with an infinite number and return null, while
#   sort_by takes strings. For digits, hex and base32 max is right.
# Seen 2026-11-29: of 1,000 KSUIDs, one a second, JavaScript's max is the 405th,
#   min the 615th and max_by null; Python's are right. For the hex texts of the
#   same bytes only max_by is wrong.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check jmespath==1.1.0
npm install --no-audit --no-fund --ignore-scripts --loglevel=error jmespath@0.16.0 >npm.log

cat >make.py <<'EOF'
import json
from hashlib import sha256

LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def base62(number):
    text = ""
    for _ in range(27):
        number, digit = divmod(number, 62)
        text = LETTERS[digit] + text
    return text


rows = []
for second in range(1000):
    number = (395835000 + second) << 128 | int.from_bytes(sha256(str(second).encode()).digest()[:16])
    rows.append({"ksuid": base62(number), "hex": f"{number:040x}"})
assert rows == sorted(rows, key=lambda row: row["ksuid"])
json.dump(rows, open("rows.json", "w"))
EOF
cat >main.py <<'EOF'
import json

import jmespath

rows = json.load(open("rows.json"))
for form in "ksuid", "hex":
    for query in f"max([].{form})", f"min([].{form})", f"sort([].{form})[-1]", f"max_by(@, &{form}).{form}":
        found = jmespath.search(query, rows)
        places = [i for i, row in enumerate(rows) if row[form] == found]
        print("Python", query, places)
EOF
cat >main.cjs <<'EOF'
const jmespath = require('jmespath')
const rows = require('./rows.json')

for (const form of ['ksuid', 'hex']) {
  for (const query of [`max([].${form})`, `min([].${form})`, `sort([].${form})[-1]`, `max_by(@, &${form}).${form}`]) {
    const found = jmespath.search(rows, query)
    const places = rows.map((row, i) => (row[form] === found ? i : -1)).filter((i) => i >= 0)
    console.log('JavaScript', query, `[${places}]`)
  }
}
EOF
cat >want <<'EOF'
Python max([].ksuid) [999]
Python min([].ksuid) [0]
Python sort([].ksuid)[-1] [999]
Python max_by(@, &ksuid).ksuid [999]
Python max([].hex) [999]
Python min([].hex) [0]
Python sort([].hex)[-1] [999]
Python max_by(@, &hex).hex [999]
JavaScript max([].ksuid) [404]
JavaScript min([].ksuid) [614]
JavaScript sort([].ksuid)[-1] [999]
JavaScript max_by(@, &ksuid).ksuid []
JavaScript max([].hex) [999]
JavaScript min([].hex) [0]
JavaScript sort([].hex)[-1] [999]
JavaScript max_by(@, &hex).hex []
EOF

v/bin/python make.py
v/bin/python main.py >got
node main.cjs >>got
cat got
diff want got >&2 || { echo "jmespath-max-is-not-the-last-of-sort: no longer holds" >&2; exit 1; }
