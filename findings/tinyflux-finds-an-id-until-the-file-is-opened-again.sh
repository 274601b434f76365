#!/bin/sh
# TinyFlux: a point is found by the ID in its field until the file is opened
# again.
#
# Package: tinyflux 1.2.0 (PyPI).
# Guess: a field is an int or a float, and stays what it was: the point is found
#   by its ID, in memory as in a file.
# Behaviour: the file has each field as a float. The index, which count uses,
#   has the value as it was inserted, but all() reads the file. Once the file is
#   opened again, the index has the floats too, and no point has the ID: they
#   are not equal to an int in Python. Tests with MemoryStorage pass. Text, and
#   so a tag, is kept.
# Seen 2026-11-30: count of the ID is 1 in memory, 1 after inserting into a
#   file, and 0 after opening it again; by the tag always 1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check tinyflux==1.2.0

cat >main.py <<'EOF'
from datetime import datetime, timezone

from tinyflux import FieldQuery, Point, TagQuery, TinyFlux
from tinyflux.storages import MemoryStorage

ids = [1179183313482456070, 1179183313482456071, 1179183313482456072]


def show(name, db):
    found, tagged = db.count(FieldQuery().order == ids[1]), db.count(TagQuery().order == str(ids[1]))
    kinds = {type(point.fields["order"]).__name__ for point in db.all()}
    print(f"{name}: {found} found by the field, {tagged} by the tag; all() has {kinds}")


def insert(db):
    time = datetime(2026, 11, 30, tzinfo=timezone.utc)
    for id_ in ids:
        db.insert(Point(time=time, tags={"order": str(id_)}, fields={"order": id_}))
    return db


show("in memory", insert(TinyFlux(storage=MemoryStorage)))
show("in a file", insert(TinyFlux("orders.csv")))
show("opened again", TinyFlux("orders.csv"))
EOF
cat >want <<'EOF'
in memory: 1 found by the field, 1 by the tag; all() has {'int'}
in a file: 1 found by the field, 1 by the tag; all() has {'float'}
opened again: 0 found by the field, 1 by the tag; all() has {'float'}
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "tinyflux-finds-an-id-until-the-file-is-opened-again: no longer holds" >&2; exit 1; }
