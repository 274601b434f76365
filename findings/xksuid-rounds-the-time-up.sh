#!/bin/sh
# xksuid: half of its KSUIDs are from the next second.
#
# Packages: xksuid 0.0.4, ksuid 3.0.0 for comparison (npm).
# Guess: a KSUID has the seconds of its time, cut off, as in Segmentio's program
#   and in the packages for other languages. What is made later sorts later.
# Behaviour: the milliseconds are rounded, so in the second half of a second the
#   ID has the time of the next one. It reads as made in the future, and is in
#   the wrong order among IDs of other packages: one made at .6 sorts after one
#   that ksuid makes at .9 of the same second. A query for the IDs of a day
#   misses those of its last half second, and has some of the day before.
# Seen 2026-11-30: made at 23:59:59.500 it reads 00:00:00 of the next day, with
#   ksuid 23:59:59; 0.6 s sorts after 0.9 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error xksuid@0.0.4 ksuid@3.0.0 >npm.log

cat >main.mjs <<'EOF'
import KSUID from 'ksuid'
import { generate, parse } from 'xksuid'

for (const ms of [0, 499, 500, 999]) {
  const at = Date.UTC(2026, 10, 29, 23, 59, 59, ms)
  const [theirs, ours] = [parse(generate(false, at)).ts, KSUID.randomSync(at).date]
  console.log(`${ms} ms: xksuid ${theirs.toISOString()}, ksuid ${ours.toISOString()}`)
}
const at = Date.UTC(2026, 10, 29, 12)
const [early, late] = [generate(false, at + 600), KSUID.randomSync(at + 900).string]
console.log(`0.6 before 0.9: ${early < late}`)
EOF
cat >want <<'EOF'
0 ms: xksuid 2026-11-29T23:59:59.000Z, ksuid 2026-11-29T23:59:59.000Z
499 ms: xksuid 2026-11-29T23:59:59.000Z, ksuid 2026-11-29T23:59:59.000Z
500 ms: xksuid 2026-11-30T00:00:00.000Z, ksuid 2026-11-29T23:59:59.000Z
999 ms: xksuid 2026-11-30T00:00:00.000Z, ksuid 2026-11-29T23:59:59.000Z
0.6 before 0.9: false
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "xksuid-rounds-the-time-up: no longer holds" >&2; exit 1; }
