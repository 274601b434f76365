#!/bin/sh
# SurrealDB (Python): an int of 2^63 or more is stored as a negative number.
#
# Package: surrealdb 2.0.0 (PyPI, with the database inside; run with Python
#   3.11).
# Guess: integers have 64 bits with a sign, so a larger parameter is refused,
#   as it is in the text of a query, or becomes a decimal.
# Behaviour: it wraps, without an error, as a parameter, in create() and in a
#   RecordID; what was written as 2^63 + 1 is not found by number > 0, and comes
#   back as another number. In the text of a query, orders:N with such an N is
#   a text, as the documentation says, so a RecordID of the int does not find
#   what a query has created.
# Seen 2026-11-29: 2^63 + 1 is stored as -9223372036854775807 in all three, a
#   literal is refused, and 2^63 - 1 is right everywhere.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check surrealdb==2.0.0

cat >main.py <<'EOF'
from surrealdb import RecordID, Surreal


def literal(db, n):
    try:
        return db.query(f"RETURN {n}")
    except Exception:
        return "refused"


with Surreal("mem://") as db:
    db.use("test", "test")
    for n in (2**63 - 1, 2**63 + 1):
        print(n)
        print("  parameter:", db.query("CREATE rows SET number = $n", {"n": n})[0]["number"])
        print("  create():", db.create("rows", {"number": n})["number"])
        print("  rows above 0:", len(db.query("SELECT * FROM rows WHERE number > 0")))
        print("  RecordID:", db.create(RecordID("records", n), {})["id"].id)
        print("  literal:", literal(db, n))
        id = db.query(f"CREATE orders:{n}")[0]["id"].id
        print(f"  orders:N: {type(id).__name__} {id}, found by RecordID: {bool(db.select(RecordID('orders', n)))}")
EOF
cat >want <<'EOF'
9223372036854775807
  parameter: 9223372036854775807
  create(): 9223372036854775807
  rows above 0: 2
  RecordID: 9223372036854775807
  literal: 9223372036854775807
  orders:N: int 9223372036854775807, found by RecordID: True
9223372036854775809
  parameter: -9223372036854775807
  create(): -9223372036854775807
  rows above 0: 2
  RecordID: -9223372036854775807
  literal: refused
  orders:N: str 9223372036854775809, found by RecordID: False
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "surrealdb-stores-unsigned-parameters-as-negative: no longer holds" >&2; exit 1; }
