#!/bin/sh
# ClickHouse: kostikConsistentHash puts numbers in a row into one bucket of
# 16.
#
# Package: chdb 4.4.0 (PyPI; ClickHouse 26.9 inside a Python process).
# Guess: a function named consistent hash spreads integer keys as
#   jumpConsistentHash does: max/mean at most 1.05.
# Behaviour: it does not mix its argument. 100,000 numbers in a row are in one
#   bucket, the same numbers shifted left by 22 bits (Snowflake IDs of one
#   worker) in 5; through cityHash64 it is even.
# Seen 2026-11-28: in a row: 1 bucket; shifted: 5 buckets, the fullest 7.86
#   times the mean; with cityHash64 16 and 1.03; jumpConsistentHash 16 and at
#   most 1.01 for the shifted ones.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check chdb==4.4.0

cat >main.py <<'EOF'
import chdb

for hash in ("kostikConsistentHash(number, 16)", "kostikConsistentHash(bitShiftLeft(number, 22), 16)",
             "kostikConsistentHash(cityHash64(number), 16)", "jumpConsistentHash(bitShiftLeft(number, 22), 16)"):
    print(hash, chdb.query(f"""select count() as buckets, round(max(n) / 6250, 2) as fullest
        from (select {hash} as bucket, count() as n from numbers(100000) group by bucket)""", "JSONEachRow").data().strip())
EOF
cat >want <<'EOF'
kostikConsistentHash(number, 16) {"buckets":1,"fullest":16}
kostikConsistentHash(bitShiftLeft(number, 22), 16) {"buckets":5,"fullest":7.86}
kostikConsistentHash(cityHash64(number), 16) {"buckets":16,"fullest":1.03}
jumpConsistentHash(bitShiftLeft(number, 22), 16) {"buckets":16,"fullest":1.01}
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "clickhouse-kostik-hash-leaves-buckets-empty: no longer holds" >&2; exit 1; }
