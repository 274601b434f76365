#!/bin/sh
# simple-plist: in a binary property list, a number of 41 bits is read and
# written as its low 32 bits; as XML it is right.
#
# Package: simple-plist 1.4.0 (npm); Python's plistlib is the other side.
# Guess: readFileSync takes either form of a property list and gives the same
#   object. Integers have 64 bits in the format and are exact up to 2^53.
# Behaviour: binary integers of 8 bytes are put together with the bit operators
#   of JavaScript, which know 32 bits: 2^31 is negative, milliseconds since 1970
#   are another time, and a 63-bit ID its low bits. The writer cuts numbers in
#   the same way. One of 16 bytes, 2^63 or more, is an object that holds all of
#   it. From XML numbers are those of JavaScript.
# Seen 2026-11-29: 1795817000000 is 520670272 in both directions, and
#   1179183313482456071 is read as -584016889.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error simple-plist@1.4.0 >npm.log

cat >make.py <<'EOF'
import plistlib

order = {"at": 1795817000000, "id": 1179183313482456071, "n": 2147483648}
for name, form in ("binary", plistlib.FMT_BINARY), ("xml", plistlib.FMT_XML):
    with open(name, "wb") as file:
        plistlib.dump(order, file, fmt=form)
EOF
cat >main.cjs <<'EOF'
const plist = require('simple-plist')

for (const name of ['xml', 'binary']) {
  console.log(`${name}: ${JSON.stringify(plist.readFileSync(name))}`)
}
plist.writeFileSync('written-xml', { at: 1795817000000 })
plist.writeBinaryFileSync('written-binary', { at: 1795817000000 })
EOF
cat >read.py <<'EOF'
import plistlib

for name in "written-xml", "written-binary":
    with open(name, "rb") as file:
        print(name, plistlib.load(file))
EOF
cat >want <<'EOF'
xml: {"at":1795817000000,"id":1179183313482456000,"n":2147483648}
binary: {"at":520670272,"id":-584016889,"n":-2147483648}
written-xml {'at': 1795817000000}
written-binary {'at': 520670272}
EOF

python3 make.py
node main.cjs >got
python3 read.py >>got
cat got
diff want got >&2 || { echo "simple-plist-cuts-numbers-of-binary-files-to-32-bits: no longer holds" >&2; exit 1; }
