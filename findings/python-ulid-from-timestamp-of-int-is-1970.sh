#!/bin/sh
# python-ulid: from_timestamp(1764300000) is a time in January 1970, with
# 1764300000.0 in 2025.
#
# Package: python-ulid 4.1.0 (PyPI).
# Guess: from_timestamp takes seconds, as datetime.fromtimestamp and
#   time.time() do, whether int or float.
# Behaviour: a float is taken as seconds, an int as milliseconds.
#   int(time.time()), or a column of whole seconds, makes ULIDs of 1970 that
#   sort before all others; no error.
# Seen 2026-11-28: 1970-01-21 for the int, 2025-11-28 for the float.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check python-ulid==4.1.0

cat >main.py <<'EOF'
from ulid import ULID

for seconds in (1764300000, 1764300000.0):
    ulid = ULID.from_timestamp(seconds)
    print(repr(seconds), str(ulid)[:10], ulid.datetime.isoformat())
EOF
cat >want <<'EOF'
1764300000 0001MJJ570 1970-01-21T10:05:00+00:00
1764300000.0 01KB47K2R0 2025-11-28T03:20:00+00:00
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "python-ulid-from-timestamp-of-int-is-1970: no longer holds" >&2; exit 1; }
