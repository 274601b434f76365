#!/bin/sh
# sqlite-utils: unsigned IDs of a CSV file become one REAL, from JSON they are
# refused.
#
# Package: sqlite-utils 4.2.1 (PyPI; run with Python 3.11).
# Guess: a column of a CSV file becomes INTEGER only if SQLite can hold its
#   numbers; from 2^63 on it stays TEXT, or the row is refused, as it is when
#   the same rows come as JSON.
# Behaviour: whether a column is an integer is asked of Python, whose int has
#   no end. The rows are stored as texts first, then the column is changed to
#   INTEGER, and SQLite turns what does not fit into a double. No error; the
#   schema says INTEGER, the rows say real. From JSON: OverflowError.
# Seen 2026-11-29: of 1,000 UUIDv7s as decimal numbers 252 are left, of 1,000
#   numbers in a row from 2^63 on one; IDs below 2^63 are all there. With
#   --no-detect-types the texts are kept.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check sqlite-utils==4.2.1

cat >files.py <<'EOF'
import json
from random import Random

random = Random(1)


def uuid7():
    return 0x019ACA0E5800 << 80 | 7 << 76 | random.getrandbits(12) << 64 | 2 << 62 | random.getrandbits(62)


for name, ids in {
    "signed": range(1179183313482456071, 1179183313482457071),
    "unsigned": range(2**63, 2**63 + 1000),
    "uuid7": [uuid7() for _ in range(1000)],
}.items():
    with open(name + ".csv", "w") as csv, open(name + ".json", "w") as rows:
        print("id", *ids, sep="\n", file=csv)
        json.dump([{"id": id} for id in ids], rows)
EOF
v/bin/python files.py
cat >want <<'EOF'
signed: integer, 1000 distinct; no-detect: text, 1000 distinct; JSON: stored
unsigned: real, 1 distinct; no-detect: text, 1000 distinct; JSON: refused
uuid7: real, 252 distinct; no-detect: text, 1000 distinct; JSON: refused
schema: "id" INTEGER
EOF

# insert ARGUMENT...: puts a file into an empty database.
insert() {
	rm -f x.db
	v/bin/sqlite-utils insert x.db ids "$@" 2>insert.log >&2
}
# kinds: the types of the stored values, and how many there are.
kinds() {
	v/bin/sqlite-utils x.db --raw \
		"select group_concat(distinct typeof(id)) || ', ' || count(distinct id) || ' distinct' from ids"
}
for name in signed unsigned uuid7; do
	insert "$name.csv" --csv
	detected=$(kinds)
	insert "$name.csv" --csv --no-detect-types
	texts=$(kinds)
	json=stored
	insert "$name.json" || { grep -q 'too large' insert.log && json=refused; }
	echo "$name: $detected; no-detect: $texts; JSON: $json"
done >got
insert uuid7.csv --csv
echo "schema: $(v/bin/sqlite-utils schema x.db | grep -o '"id" [A-Z]*')" >>got
cat got
diff want got >&2 || { echo "sqlite-utils-makes-unsigned-csv-ids-equal: no longer holds" >&2; exit 1; }
