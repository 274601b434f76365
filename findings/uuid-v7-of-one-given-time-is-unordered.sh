#!/bin/sh
# uuid (npm): v7() is ordered within a millisecond, v7({ msecs }) is not.
#
# Package: uuid 14.0.3 (npm).
# Guess: v7 counts within a millisecond in either case: rows imported with one
#   creation time keep the order in which their IDs were made.
# Behaviour: with any option the shared state is left aside and the counter is
#   random in each call. A backfill that gives the rows their old times gets
#   IDs in random order within each millisecond.
# Seen 2026-11-28: 0 of 9,999 neighbours out of order without options, about
#   half with one given time.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	uuid@14.0.3 >npm.log

cat >main.mjs <<'EOF'
import { v7 } from 'uuid'
const down = (make) => {
  const ids = Array.from({ length: 10000 }, make)
  return ids.filter((id, i) => i > 0 && id < ids[i - 1]).length
}
console.log('v7(): out of order', down(() => v7()))
const given = down(() => v7({ msecs: 1764300000000 }))
console.log('v7({ msecs }): out of order', given > 4000 && given < 6000 ? '4000 to 6000' : given, 'of 9999')
EOF
cat >want <<'EOF'
v7(): out of order 0
v7({ msecs }): out of order 4000 to 6000 of 9999
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "uuid-v7-of-one-given-time-is-unordered: no longer holds" >&2; exit 1; }
