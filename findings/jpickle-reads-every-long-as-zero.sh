#!/bin/sh
# jpickle: an int of Python with more than 32 bits is 0.
#
# Packages: jpickle 0.4.1, pickleparser 0.2.1 for comparison (npm); the pickles
#   are written by Python's pickle.
# Guess: an opcode that the reader does not know is an error ("most opcodes" of
#   protocols 0 to 2, says the README). A 63-bit ID is a rounded number.
# Behaviour: protocols 0 and 1 write a large int as digits, which become a
#   number. Protocol 2 writes its bytes; the reader skips them and takes 0, for
#   every int of 2^31 or more. All IDs of a list, and times in milliseconds, are
#   0, and keys of a dict fall together, without an error.
# Seen 2026-11-29: {id: "a", id + 1: "b", 5: "c"} is {"0":"b","5":"c"} in
#   protocol 2; a time in milliseconds is exact in 0 and 1, and 0 in 2.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error jpickle@0.4.1 pickleparser@0.2.1 >npm.log

cat >make.py <<'EOF'
import json
import pickle

id = 1179183313482456071
values = [[2147483647, 2147483648, 1795817000000], {id: "a", id + 1: "b", 5: "c"}]
print(json.dumps([[pickle.dumps(v, protocol).hex() for protocol in (0, 1, 2)] for v in values]))
EOF
cat >main.cjs <<'EOF'
const jpickle = require('jpickle')
const { Parser } = require('pickleparser')
const [lists, dicts] = require('./pickles.json')

for (const protocol of [0, 1, 2]) {
  for (const pickle of [lists[protocol], dicts[protocol]]) {
    const bytes = Buffer.from(pickle, 'hex')
    console.log(`protocol ${protocol}: ${JSON.stringify(jpickle.loads(bytes.toString('binary')))}`)
  }
}
console.log(`pickleparser, protocol 2: ${JSON.stringify(new Parser().parse(Buffer.from(lists[2], 'hex')))}`)
EOF
cat >want <<'EOF'
protocol 0: [2147483647,2147483648,1795817000000]
protocol 0: {"5":"c","1179183313482456000":"b"}
protocol 1: [2147483647,2147483648,1795817000000]
protocol 1: {"5":"c","1179183313482456000":"b"}
protocol 2: [2147483647,0,0]
protocol 2: {"0":"b","5":"c"}
pickleparser, protocol 2: [2147483647,2147483648,1795817000000]
EOF

python3 make.py >pickles.json
node main.cjs >got 2>node.log
cat got
diff want got >&2 || { echo "jpickle-reads-every-long-as-zero: no longer holds" >&2; exit 1; }
