#!/bin/sh
# snowflake-id-toolkit (Python): after a full millisecond, a node makes the IDs
# of the next node.
#
# Package: snowflake-id-toolkit 0.6.0 (PyPI; with typing_extensions 4.16.0,
#   which it imports; run with Python 3.11).
# Guess: when the 4,096 numbers of a millisecond are used up, the generator
#   waits for the next one and begins at 0 again.
# Behaviour: it waits, and then goes on counting: 4,096, 4,097 and so on until a
#   millisecond passes without a wait. The sequence is not masked, and bit 12
#   is the lowest of the node: node 0 makes the IDs of node 1. Node 1 has this
#   bit set already, keeps its own IDs, and so meets those of node 0.
# Seen 2026-11-29: with a millisecond that lasts for 6,000 looks at the clock,
#   4,096 of 12,000 IDs of node 0 read as node 1 and 1,904 as node 2, and 4,096
#   are also made by node 1. By the clock of the machine, a plain loop over
#   InstagramSnowflakeIDGenerator, with 1,024 numbers, does the same.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check snowflake-id-toolkit==0.6.0 typing_extensions==4.16.0

cat >main.py <<'EOF'
import itertools
import sys
import time

from snowflake_id_toolkit import InstagramSnowflakeIDGenerator, TwitterSnowflakeIDGenerator


def make(kind, node, count):
    generator = kind(node)
    return [generator.generate_next_id() for _ in range(count)]


ids = make(InstagramSnowflakeIDGenerator, 0, 100000)
print("Instagram, clock of the machine: nodes", sorted({id.node_id() for id in ids}), file=sys.stderr)

# A millisecond lasts for 6,000 looks at the clock.
made = {}
for node in (0, 1):
    looks = itertools.count()
    time.time_ns = lambda: (1795824000000 + next(looks) // 6000) * 1000000
    made[node] = make(TwitterSnowflakeIDGenerator, node, 12000)
    nodes = [id.node_id() for id in made[node]]
    print(f"node {node}:", {read: nodes.count(read) for read in sorted(set(nodes))})
print("made by both:", len(set(made[0]) & set(made[1])))
EOF
cat >want <<'EOF'
node 0: {0: 6000, 1: 4096, 2: 1904}
node 1: {1: 10096, 3: 1904}
made by both: 4096
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "snowflake-id-toolkit-makes-the-next-nodes-ids: no longer holds" >&2; exit 1; }
