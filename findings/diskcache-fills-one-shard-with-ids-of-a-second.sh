#!/bin/sh
# diskcache: FanoutCache puts the IDs of a second into one shard or two, and
# drops them while the others are empty.
#
# Package: diskcache 5.6.3 (PyPI).
# Guess: keys are hashed to the shards. 1,000 values of 4 KiB, under IDs made
#   one a millisecond, spread over eight shards and fit into 8 MiB.
# Behaviour: the hash of an int key is the int modulo 2^32 - 1, and the shard
#   is that modulo their number. With the time above bit 22, the bits that
#   choose the shard change each 1,024 ms. A shard has an eighth of size_limit,
#   so what was just stored is dropped while the others are empty. The same IDs
#   as texts, and numbers in a row, are spread evenly.
# Seen 2026-11-29: 240 of 1,000 values are left, all in two shards, and 1.3 of
#   8 MiB are used; as texts all 1,000 are left.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check diskcache==5.6.3

cat >main.py <<'EOF'
import sys

from diskcache import Cache, FanoutCache

# 2026-11-28T00:00:00Z in milliseconds since 2020, shifted by 22 bits.
FIRST = (1795824000000 - 1577836800000) << 22

for name, keys in {
    "Snowflake IDs": [FIRST + (ms << 22) for ms in range(1000)],
    "the same as texts": [str(FIRST + (ms << 22)) for ms in range(1000)],
    "numbers in a row": range(1000),
}.items():
    with FanoutCache(name, shards=8, size_limit=8 << 20) as cache:
        for key in keys:
            cache[key] = bytes(4096)
        left = sum(key in cache for key in keys)
        used = sum(len(Cache(f"{name}/{shard:03}")) > 0 for shard in range(8))
        kept = "all left" if left == 1000 else "less than half left" if left < 500 else left
        print(f"{name}: {kept}, {used} of 8 shards used")
        print(f"{name}: {left} left, {cache.volume() >> 10} KiB used", file=sys.stderr)
EOF
cat >want <<'EOF'
Snowflake IDs: less than half left, 2 of 8 shards used
the same as texts: all left, 8 of 8 shards used
numbers in a row: all left, 8 of 8 shards used
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "diskcache-fills-one-shard-with-ids-of-a-second: no longer holds" >&2; exit 1; }
