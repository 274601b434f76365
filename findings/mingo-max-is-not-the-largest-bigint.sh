#!/bin/sh
# mingo (MongoDB queries in JavaScript): $max of bigints is a small one, $sum is
# 0.
#
# Package: mingo 7.2.7 (npm).
# Guess: bigint is the type that holds MongoDB's long; accumulators answer as
#   for numbers, or refuse it.
# Behaviour: $group by a bigint works. Otherwise a bigint is not ordered and is
#   not a number: $sort leaves the documents as they are, $max and $min answer
#   another value, $sum skips all, without an error.
# Seen 2026-11-28: of 10n, 1179183313482456071n and 5n, $max is 5n, $min is
#   10n and $sum is 0; $sort keeps this order; with numbers all are right.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	mingo@7.2.7 >npm.log

cat >main.mjs <<'EOF'
import { aggregate } from 'mingo'

const show = (value) => JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? v + 'n' : v))
const group = [{ $group: { _id: null, max: { $max: '$id' }, min: { $min: '$id' }, sum: { $sum: '$id' } } }]
const big = [{ id: 10n }, { id: 1179183313482456071n }, { id: 5n }]
console.log('sort   ', show(aggregate(big, [{ $sort: { id: 1 } }])))
console.log('bigints', show(aggregate(big, group)))
console.log('numbers', show(aggregate([{ id: 10 }, { id: 77 }, { id: 5 }], group)))
EOF
cat >want <<'EOF'
sort    [{"id":"10n"},{"id":"1179183313482456071n"},{"id":"5n"}]
bigints [{"_id":null,"max":"5n","min":"10n","sum":0}]
numbers [{"_id":null,"max":77,"min":5,"sum":92}]
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "mingo-max-is-not-the-largest-bigint: no longer holds" >&2; exit 1; }
