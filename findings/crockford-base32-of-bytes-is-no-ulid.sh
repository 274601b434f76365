#!/bin/sh
# base32-encode: the Crockford text of a ULID's 16 bytes is another valid ULID.
#
# Packages: base32-encode 2.0.0, ulid 3.0.2 (npm).
# Guess: a ULID is Crockford's base32 of 16 bytes, so an encoder with this
#   variant gives its text.
# Behaviour: an encoder of bytes starts at the first bit and pads at the end; a
#   ULID is a number of 128 bits padded at the front. Both have 26 characters
#   of one alphabet and sort alike among themselves, and each decodes as the
#   other without an error, to another time.
# Seen 2026-11-28: 01KB47K2R000... of 2025 becomes 06DCGYCB0000..., which is a
#   ULID of 2193.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	base32-encode@2.0.0 ulid@3.0.2 >npm.log

cat >main.mjs <<'EOF'
import encode from 'base32-encode'
import { decodeTime, ulidToUUID } from 'ulid'

const ulid = '01KB47K2R000000000000000ZZ'
const bytes = Buffer.from(ulidToUUID(ulid).replaceAll('-', ''), 'hex')
const text = encode(bytes, 'Crockford')
for (const each of [ulid, text]) console.log(each, each.length, new Date(decodeTime(each)).toISOString())
EOF
cat >want <<'EOF'
01KB47K2R000000000000000ZZ 26 2025-11-28T03:20:00.000Z
06DCGYCB0000000000000003ZW 26 2193-08-19T13:20:00.000Z
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "crockford-base32-of-bytes-is-no-ulid: no longer holds" >&2; exit 1; }
