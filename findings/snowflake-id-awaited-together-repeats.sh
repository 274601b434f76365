#!/bin/sh
# @skorotkiewicz/snowflake-id: IDs that are awaited together repeat, one after
# the other they do not.
#
# Package: @skorotkiewicz/snowflake-id 1.0.1 (npm).
# Guess: generate() is asynchronous because it waits when the 4,096 numbers of
#   a millisecond are used up; calls that run side by side wait too.
# Behaviour: only the call that finds the sequence at its end waits. The next
#   ones go on with 1, 2, 3 in the same millisecond, and those that waited take
#   the sequence as the others left it. In a loop with await there is no other
#   call, and nothing repeats.
# Seen 2026-11-29: of 100,000 IDs of one Promise.all 67,000 to 93,000 are
#   distinct, of 100,000 awaited one by one all. With a millisecond that lasts
#   longer, for a count that does not depend on the machine: 4,097 of 5,000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	@skorotkiewicz/snowflake-id@1.0.1 >npm.log

cat >main.mjs <<'EOF'
import { Snowflake } from '@skorotkiewicz/snowflake-id'

async function count(calls, together) {
  const snowflake = new Snowflake(1)
  const ids = []
  if (together) ids.push(...(await Promise.all(Array.from({ length: calls }, () => snowflake.generate()))))
  else for (let i = 0; i < calls; i++) ids.push(await snowflake.generate())
  return `${new Set(ids).size} of ${calls} distinct`
}

console.error('the clock of this machine, together:', await count(100000, true))
console.error('the clock of this machine, one by one:', await count(100000, false))

// A millisecond lasts for 6,000 looks at the clock.
const start = Date.now()
let looks = 0
Date.now = () => start + Math.floor(looks++ / 6000)
console.log('together:', await count(5000, true))
looks = 0
console.log('one by one:', await count(5000, false))
EOF
cat >want <<'EOF'
together: 4097 of 5000 distinct
one by one: 5000 of 5000 distinct
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "snowflake-id-awaited-together-repeats: no longer holds" >&2; exit 1; }
