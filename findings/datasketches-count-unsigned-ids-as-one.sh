#!/bin/sh
# DataSketches (Python): 1,000 unsigned IDs in a row count as one.
#
# Package: datasketches 5.2.0 (PyPI).
# Guess: update(int) hashes all digits, or refuses an int beyond 64 bits; the
#   HLL, theta and CPC sketches agree.
# Behaviour: HLL and theta take an int of 2^63 or more as a float, and CPC one
#   of 2^64 or more. IDs that round to the same double are one item: up to
#   2,048 in a row, and of the UUIDv7s of a millisecond some 250 are left. Below
#   2^63, and for texts, all are right.
# Seen 2026-11-29: estimates for 1,000 IDs from 2^63 on are HLL 1, theta 1, CPC
#   1,000; for 1,000 UUIDv7s as int they are about 250.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check datasketches==5.2.0

cat >main.py <<'EOF'
from random import Random

from datasketches import cpc_sketch, hll_sketch, update_theta_sketch

random = Random(1)


def uuid7():
    return 0x019ACA0E5800 << 80 | 7 << 76 | random.getrandbits(12) << 64 | 2 << 62 | random.getrandbits(62)


sketches = {"HLL": lambda: hll_sketch(12), "theta": update_theta_sketch, "CPC": lambda: cpc_sketch(11)}


def estimate(make, ids):
    sketch = make()
    for id in ids:
        sketch.update(id)
    got = sketch.get_estimate()
    return "about 1000" if 900 < got < 1100 else "about 250" if 230 < got < 270 else round(got)


uuids = [uuid7() for _ in range(1000)]
for name, ids in {
    "signed": range(1179183313482456071, 1179183313482457071),
    "unsigned": range(2**63, 2**63 + 1000),
    "UUIDv7": uuids,
    "UUIDv7 as text": map(str, uuids),
}.items():
    ids = list(ids)
    print(name, {kind: estimate(make, ids) for kind, make in sketches.items()})
EOF
cat >want <<'EOF'
signed {'HLL': 'about 1000', 'theta': 'about 1000', 'CPC': 'about 1000'}
unsigned {'HLL': 1, 'theta': 1, 'CPC': 'about 1000'}
UUIDv7 {'HLL': 'about 250', 'theta': 'about 250', 'CPC': 'about 250'}
UUIDv7 as text {'HLL': 'about 1000', 'theta': 'about 1000', 'CPC': 'about 1000'}
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "datasketches-count-unsigned-ids-as-one: no longer holds" >&2; exit 1; }
