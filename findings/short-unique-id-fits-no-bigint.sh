#!/bin/sh
# short-unique-id (Python): an ID has 70 bits, and one call with mult changes
# those of all later calls.
#
# Package: short-unique-id 0.3.0 (PyPI).
# Guess: get_next_snowflake_id() is an int of 64 bits for a bigint column, as
#   the README says; mult, the ticks of a second, is for the ID of this call.
#   IDs ascend, and the short texts sort like them.
# Behaviour: the time in ticks of 0.1 ms since 2020 needs 41 bits, and 29 bits
#   of worker and sequence follow. mult stays set for the process: after a
#   call with mult=1000, which counts milliseconds, the following IDs are a
#   tenth of the earlier ones and sort before them.
# Seen 2026-11-30: 70 bits; with mult=1000, 67 bits, and the next ID without it
#   is smaller than the first, in text too.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check short-unique-id==0.3.0

cat >main.py <<'EOF'
from short_unique_id import generate_short_id, get_next_snowflake_id

first, first_text = get_next_snowflake_id(), generate_short_id()
print("bits:", first.bit_length())
print("bits with mult=1000:", get_next_snowflake_id(mult=1000).bit_length())
second, second_text = get_next_snowflake_id(), generate_short_id()
print("the next ID without mult is larger than the first:", second > first)
print("and its text sorts after the first:", second_text > first_text)
EOF
cat >want <<'EOF'
bits: 70
bits with mult=1000: 67
the next ID without mult is larger than the first: False
and its text sorts after the first: False
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "short-unique-id-fits-no-bigint: no longer holds" >&2; exit 1; }
