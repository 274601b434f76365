#!/bin/sh
# uuid-1345: a v1 UUID of today is read as one of 57 years ago, and is not valid
# to other packages.
#
# Packages: uuid-1345 1.0.2, uuid 14.0.3 for comparison (npm); Python's uuid
#   reads the time.
# Guess: an RFC 4122 UUID of version 1: others read its time, and a validator
#   takes it.
# Behaviour: the two bits of the variant are written into byte 7, which holds
#   part of the time, and not into byte 8. Since 1982 the bits there are 11, and
#   10 takes 57 years off. Byte 8 begins with 00, which is no variant of RFC
#   4122. Among themselves the UUIDs are distinct and in order of time.
# Seen 2026-11-29: a UUID made now is 57 years old to Python, its variant is
#   "reserved for NCS compatibility", and validate() of uuid is false.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error uuid-1345@1.0.2 uuid@14.0.3 >npm.log

cat >main.mjs <<'EOF'
import uuid1345 from 'uuid-1345'
import { v1, validate } from 'uuid'

for (const id of [uuid1345.v1(), v1()]) {
  console.log(id, validate(id))
}
EOF
cat >read.py <<'EOF'
import sys
import uuid
from datetime import datetime, timedelta

for line in sys.stdin:
    text, valid = line.split()
    id = uuid.UUID(text)
    age = datetime.now() - (datetime(1582, 10, 15) + timedelta(microseconds=id.time // 10))
    print(f"{round(age.days / 365.25)} years old, {id.variant}, valid: {valid}")
EOF
cat >want <<'EOF'
57 years old, reserved for NCS compatibility, valid: false
0 years old, specified in RFC 4122, valid: true
EOF

node main.mjs >ids
python3 read.py <ids >got
cat ids got
diff want got >&2 || { echo "uuid-1345-writes-the-variant-into-the-time: no longer holds" >&2; exit 1; }
