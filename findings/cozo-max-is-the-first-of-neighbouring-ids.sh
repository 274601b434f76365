#!/bin/sh
# CozoDB: max(id) of neighbouring integers is the smallest of them.
#
# Packages: cozo-embedded 0.7.6, pycozo 0.7.6 (PyPI; run with Python 3.11).
# Guess: integers have 64 bits, and max() agrees with the order of rows. A
#   column of type Int refuses a number that does not fit, as the text of a
#   query does.
# Behaviour: the aggregates max and min compare doubles and keep the first of
#   what is equal, so max of a key is the smallest of up to 256 neighbours. An
#   int parameter of 2^63 or more is a double, and a column of type Int stores
#   each as 2^63 - 1: later ones replace the row of the first. The functions
#   max and min, "<", keys and :order are exact.
# Seen 2026-11-29: max of n, n+1, n+2 is n, and min of them in falling order is
#   n+2; of 1,000 rows put under 2^63 and on, one is left.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check cozo-embedded==0.7.6 pycozo==0.7.6

cat >main.py <<'EOF'
from pycozo.client import Client

db = Client(dataframe=False)
n = 1179183313482456071
run = lambda query: db.run(query)["rows"][0][0]
offset = lambda query: f"n+{run(query) - n}"

db.run(":create orders {id: Int => rank: Int}")
db.put("orders", [{"id": n + i, "rank": 2 - i} for i in range(3)])
print("max:", offset("?[max(id)] := *orders{id}"))
print("last of the order:", offset("?[id] := *orders{id} :order -id :limit 1"))
print("function max:", offset(f"?[id] <- [[max({n}, {n + 1}, {n + 2})]]"))
print("min by falling id:", offset("by_rank[rank, id] := *orders{id, rank} ?[min(id)] := by_rank[rank, id]"))
print("rows above n:", run(f"?[count(id)] := *orders{{id}}, id > {n}"))

db.run(":create unsigned {id: Int => text: String}")
for i in range(1000):
    db.put("unsigned", [{"id": 2**63 + i, "text": str(2**63 + i)}])
rows = db.run("?[id, text] := *unsigned{id, text}")["rows"]
print("unsigned:", len(rows), "row,", rows[0])
EOF
cat >want <<'EOF'
max: n+0
last of the order: n+2
function max: n+2
min by falling id: n+2
rows above n: 2
unsigned: 1 row, [9223372036854775807, '9223372036854776807']
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "cozo-max-is-the-first-of-neighbouring-ids: no longer holds" >&2; exit 1; }
