#!/bin/sh
# ioredis-mock: INCR of a large counter returns and stores the same number for
# ever.
#
# Packages: ioredis-mock 8.13.1, ioredis 5.11.1 (npm).
# Guess: the fake rounds what it returns, as ioredis does with Redis; the key
#   itself counts on as text.
# Behaviour: the stored text is replaced by the rounded number too, so the
#   counter stands still, in Lua as well, and there is no overflow error at
#   2^63. Redis stores the exact text: GET tells all values apart.
# Seen 2026-11-28: three INCR from 1179183313482456071 leave
#   1179183313482456000 in the key; at 2^63 - 1 INCR succeeds.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	ioredis-mock@8.13.1 ioredis@5.11.1 >npm.log

cat >main.mjs <<'EOF'
import Redis from 'ioredis-mock'

const redis = new Redis()
for (const start of ['41', '1179183313482456071', '9223372036854775807']) {
  await redis.set('key', start)
  const seen = []
  for (let i = 0; i < 3; i++) seen.push(await redis.incr('key'))
  console.log(start, 'INCR', seen.join(), 'GET', await redis.get('key'))
}
redis.disconnect()
EOF
cat >want <<'EOF'
41 INCR 42,43,44 GET 44
1179183313482456071 INCR 1179183313482456000,1179183313482456000,1179183313482456000 GET 1179183313482456000
9223372036854775807 INCR 9223372036854776000,9223372036854776000,9223372036854776000 GET 9223372036854776000
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "ioredis-mock-incr-stands-still: no longer holds" >&2; exit 1; }
