#!/bin/sh
# @langwatch/ksuid: IDs are in order for 18 hours only, then start again below.
#
# Package: @langwatch/ksuid 2.0.2 (npm).
# Guess: "K-sortable", as the README says: the ID begins with its time in
#   seconds, so a later one is larger.
# Behaviour: the time is written byte by byte with >>, of which JavaScript
#   takes the distance modulo 32: >> 40 is >> 8, and >> 32 is nothing. The two
#   lowest bytes of the time stand before the highest one. Texts start again
#   each 65,536 s, so two IDs of different days are in either order; parse
#   makes the same mistake with << and returns the right time.
# Seen 2026-11-29: of 72 IDs, one an hour, 4 are below the one before; of
#   10,000 pairs from one year half are in the wrong order.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	@langwatch/ksuid@2.0.2 >npm.log

cat >main.mjs <<'EOF'
import { Instance, Ksuid, parse } from '@langwatch/ksuid'

const instance = new Instance(Instance.schemes.RANDOM, new Uint8Array(8))
const start = Date.UTC(2026, 0, 1) / 1000
const make = (second) => new Ksuid('prod', 'order', second, instance, 0).toString()

const hours = Array.from({ length: 72 }, (_, hour) => make(start + hour * 3600))
const turns = hours.map((_, hour) => hour).filter((hour) => hour > 0 && hours[hour] < hours[hour - 1])
console.log('hours:', turns.length, 'of 71 below the one before')
console.log([turns[0] - 1, turns[0]].map((hour) => `hour ${hour} ${hours[hour].slice(0, 12)}`).join(', '))
const right = hours.every((id, hour) => parse(id).timestamp === start + hour * 3600)
console.log('parsed:', right ? 'all times right' : 'wrong times')

let seed = 1
const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647
let wrong = 0
for (let i = 0; i < 10000; i++) {
  const [first, second] = [random(), random()].map((part) => start + Math.floor(part * 365 * 86400))
  if (first < second !== make(first) < make(second)) wrong++
}
console.log('pairs in the wrong order:', wrong > 4000 && wrong < 6000 ? '4000 to 6000' : wrong, 'of 10000')
console.error('pairs in the wrong order:', wrong)
EOF
cat >want <<'EOF'
hours: 4 of 71 below the one before
hour 5 order_0008p0, hour 6 order_0000Se
parsed: all times right
pairs in the wrong order: 4000 to 6000 of 10000
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "langwatch-ksuid-order-turns-after-18-hours: no longer holds" >&2; exit 1; }
