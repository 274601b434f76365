#!/bin/sh
# peewee: bulk_create replaces given IDs by 1, 2, 3, and save() stores nothing.
#
# Package: peewee 4.5.3 (PyPI), with SQLite.
# Guess: a model with its id set is stored with this id by create, save and
#   bulk_create.
# Behaviour: for a model with the default primary key only create and
#   insert_many keep the id. save() takes a set id for a stored row and sends an
#   UPDATE that changes no row; it returns 0. bulk_create leaves the primary key
#   out of the INSERT; the objects in memory keep the IDs that no row has.
#   save(force_insert=True) works.
# Seen 2026-11-28: save() leaves the table empty; the rows of bulk_create have
#   the ids 1 and 2.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check peewee==4.5.3

cat >main.py <<'EOF'
from peewee import Model, SqliteDatabase, TextField

db = SqliteDatabase(":memory:")


class Order(Model):
    name = TextField()

    class Meta:
        database = db


def rows():
    return [(order.id, order.name) for order in Order.select().order_by(Order.name)]


ID = 1179183313482456071
db.create_tables([Order])
print("save", Order(id=ID, name="a").save(), rows())
orders = [Order(id=ID, name="b"), Order(id=ID + 1, name="c")]
Order.bulk_create(orders)
print("bulk_create", rows(), "in memory", [order.id for order in orders])
Order.create(id=ID, name="d")
Order.insert_many([{"id": ID + 1, "name": "e"}]).execute()
Order(id=ID + 2, name="f").save(force_insert=True)
print("create, insert_many, force_insert", rows()[2:])
EOF
cat >want <<'EOF'
save 0 []
bulk_create [(1, 'b'), (2, 'c')] in memory [1179183313482456071, 1179183313482456072]
create, insert_many, force_insert [(1179183313482456071, 'd'), (1179183313482456072, 'e'), (1179183313482456073, 'f')]
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "peewee-drops-the-ids-it-is-given: no longer holds" >&2; exit 1; }
