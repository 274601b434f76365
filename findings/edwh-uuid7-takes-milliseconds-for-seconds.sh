#!/bin/sh
# edwh-uuid7: uuid7(timestamp_ms=...) takes seconds, and one microsecond of four
# is read back as the one before.
#
# Package: edwh-uuid7 0.2.3 (PyPI).
# Guess: timestamp_ms is milliseconds since 1970, as timestamp_ns is
#   nanoseconds. With high_precision=True, which the README describes as of
#   microsecond accuracy, the time of timestamp_ns comes back.
# Behaviour: timestamp_ms is multiplied by 10^9, as if it were seconds. The
#   milliseconds of today need more than 48 bits then, and the high ones are
#   dropped: a valid UUIDv7 of another time, without an error. The nanoseconds
#   are written across the two variant bits, which overwrite two of theirs.
# Seen 2026-11-30: timestamp_ms=1764300000000, 2025-11-28, gives a UUID of the
#   year 4360; 250 of 1,000 microseconds are read back as another one.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check edwh-uuid7==0.2.3

cat >main.py <<'EOF'
from edwh_uuid7 import uuid7, uuid7_to_datetime

for name, value in (("timestamp_ms", 1764300000000), ("timestamp_ns", 1764300000000000000)):
    print(name, value, "is", uuid7_to_datetime(uuid7(**{name: value})))

other = 0
for microsecond in range(1000):
    uuid = uuid7(timestamp_ns=1764300000000000000 + microsecond * 1000)
    other += uuid7_to_datetime(uuid, high_precision=True).microsecond != microsecond
print(other, "of 1000 microseconds are read back as another one")
EOF
cat >want <<'EOF'
timestamp_ms 1764300000000 is 4360-12-02 12:08:56.063995+00:00
timestamp_ns 1764300000000000000 is 2025-11-28 03:20:00+00:00
250 of 1000 microseconds are read back as another one
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "edwh-uuid7-takes-milliseconds-for-seconds: no longer holds" >&2; exit 1; }
