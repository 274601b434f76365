#!/bin/sh
# fast-xml-parser: one 19-digit ID of 256 is a number, the others are strings.
#
# Package: fast-xml-parser 5.12.1 (npm), default options.
# Guess: an ID beyond 2^53 is always a string, as the parser keeps what a number
#   would round, or always a rounded number.
# Behaviour: a value becomes a number if the number prints as the same text. Of
#   19 digits these are texts that end in 00, one for each double, so the type
#   of the field changes from one element to the next. Padding is lost, and a
#   hex ID of the form digits-e-digits is a float. parseTagValue: false keeps
#   all.
# Seen 2026-11-28: 1179183313482456000 is a number, ...001 a string, 00123 is
#   123, 12345e67 is 1.2345e+71; of 100,000 neighbours 390 are numbers.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	fast-xml-parser@5.12.1 >npm.log

cat >main.mjs <<'EOF'
import { XMLParser } from 'fast-xml-parser'

const parser = new XMLParser()
const parse = (id) => parser.parse(`<order><id>${id}</id></order>`).order.id
for (const id of ['1179183313482456000', '1179183313482456001', '00123', '12345e67', '1a345e67'])
  console.log(id, '->', typeof parse(id), parse(id))

const first = 1179183313482456071n
const types = { string: 0, number: 0 }
for (let i = 0n; i < 100000n; i++) types[typeof parse(first + i)]++
console.log(types)
EOF
cat >want <<'EOF'
1179183313482456000 -> number 1179183313482456000
1179183313482456001 -> string 1179183313482456001
00123 -> number 123
12345e67 -> number 1.2345e+71
1a345e67 -> string 1a345e67
{ string: 99610, number: 390 }
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "fast-xml-parser-reads-some-ids-as-numbers: no longer holds" >&2; exit 1; }
