#!/bin/sh
# node-int64 (Thrift's i64 in Node): the text of every ID beyond 2^53 is
# "Infinity".
#
# Package: thrift 0.24.0 (npm), with the node-int64 that it brings.
# Guess: the text of the object is its digits, or hex; == and < compare IDs.
# Behaviour: conversion goes to a number, which is Infinity beyond 2^53, also in
#   a template, a property name or an SQL text. Objects keyed by IDs have one
#   entry, < of two IDs is false both ways, JSON.stringify writes the bytes.
#   compare, equals and toOctetString are right.
# Seen 2026-11-28: two IDs leave one key, "Infinity".
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	thrift@0.24.0 >npm.log

cat >main.mjs <<'EOF'
import thrift from 'thrift'

const a = new thrift.Int64('105d4cf9dd309c07')
const b = new thrift.Int64('105d4cf9dd309c08')
console.log('texts', `${a}`, String(b), a.toOctetString())
console.log('keys', Object.keys({ [a]: 1, [b]: 2 }))
console.log('a < b', a < b, 'b < a', b < a, 'compare', a.compare(b), 'equals', a.equals(b))
console.log('JSON', JSON.stringify({ id: a }))
EOF
cat >want <<'EOF'
texts Infinity Infinity 105d4cf9dd309c07
keys [ 'Infinity' ]
a < b false b < a false compare -1 equals false
JSON {"id":{"buffer":{"type":"Buffer","data":[16,93,76,249,221,48,156,7]},"offset":0}}
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "node-int64-prints-every-id-as-infinity: no longer holds" >&2; exit 1; }
