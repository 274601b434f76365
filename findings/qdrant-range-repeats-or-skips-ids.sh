#!/bin/sh
# Qdrant client: pages of Range(gt=last) repeat for ever, or skip IDs.
#
# Package: qdrant-client 1.20.0 (PyPI), its in-memory mode.
# Guess: the bounds of Range keep an int as MatchValue does: the payload has
#   integers of 64 bits, and order_by sorts them exactly.
# Behaviour: the fields of Range are floats, so the bound is rounded when the
#   filter is made, on the way to a server too. Rounded down, the next page
#   begins at or before the last row again; rounded up, the rows between are
#   left out. MatchValue and start_from of OrderBy are exact.
# Seen 2026-11-29: of 300 IDs in a row, pages of 100 are the first page each
#   time, pages of 150 leave out 100 IDs, and start_from gives all.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check qdrant-client==1.20.0

cat >main.py <<'EOF'
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, FieldCondition, Filter, MatchValue, OrderBy, PointStruct, Range, VectorParams

n = 1179183313482456071
client = QdrantClient(":memory:")
client.create_collection("orders", VectorParams(size=1, distance=Distance.DOT))
client.upsert("orders", [PointStruct(id=i, vector=[1.0], payload={"order": n + i}) for i in range(300)])


def scroll(condition, limit, order_by="order"):
    where = Filter(must=[FieldCondition(key="order", **condition)]) if condition else None
    points, _ = client.scroll("orders", scroll_filter=where, order_by=order_by, limit=limit)
    return [point.payload["order"] for point in points]


def show(name, page):
    print(name, f"{len(page)} IDs, n+{page[0] - n} to n+{page[-1] - n}")


for limit in [100, 150]:
    last = 0
    for number in [1, 2, 3]:
        page = scroll({"range": Range(gt=last)}, limit)
        if not page:
            print(f"limit {limit}, page {number}: empty")
            break
        show(f"limit {limit}, page {number}:", page)
        last = page[-1]
show("match n+149:", scroll({"match": MatchValue(value=n + 149)}, 100))
show("start_from n+150:", scroll(None, 300, OrderBy(key="order", start_from=n + 150)))
print("bound:", repr(Range(gt=n).gt))
EOF
cat >want <<'EOF'
limit 100, page 1: 100 IDs, n+0 to n+99
limit 100, page 2: 100 IDs, n+0 to n+99
limit 100, page 3: 100 IDs, n+0 to n+99
limit 150, page 1: 150 IDs, n+0 to n+149
limit 150, page 2: 50 IDs, n+250 to n+299
limit 150, page 3: 50 IDs, n+250 to n+299
match n+149: 1 IDs, n+149 to n+149
start_from n+150: 150 IDs, n+150 to n+299
bound: 1.179183313482456e+18
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "qdrant-range-repeats-or-skips-ids: no longer holds" >&2; exit 1; }
