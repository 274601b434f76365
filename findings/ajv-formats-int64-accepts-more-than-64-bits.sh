#!/bin/sh
# ajv-formats: format int64 accepts 2^64 and 1e300, format int32 checks its
# range.
#
# Packages: ajv 8.20.0, ajv-formats 3.0.1 (npm).
# Guess: int64 refuses what does not fit 64 bits, as int32 refuses 2^31.
# Behaviour: int64 accepts every number without a fraction, so a service
#   behind the validator (Java, Go, a database) meets IDs that it cannot
#   store.
# Seen 2026-11-28: int64: true for 2^63, 2^64, 1e300; int32: false for 2^31.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	ajv@8.20.0 ajv-formats@3.0.1 >npm.log

cat >main.cjs <<'EOF'
const ajv = new (require('ajv'))()
require('ajv-formats')(ajv)
for (const [format, texts] of [['int64', ['9223372036854775808', '18446744073709551616', '1e300']], ['int32', ['2147483648']]]) {
  const valid = ajv.compile({ type: 'integer', format })
  for (const text of texts) console.log(format, text, valid(JSON.parse(text)))
}
EOF
cat >want <<'EOF'
int64 9223372036854775808 true
int64 18446744073709551616 true
int64 1e300 true
int32 2147483648 false
EOF

node main.cjs >got
cat got
diff want got >&2 || { echo "ajv-formats-int64-accepts-more-than-64-bits: no longer holds" >&2; exit 1; }
