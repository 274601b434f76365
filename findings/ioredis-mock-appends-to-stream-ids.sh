#!/bin/sh
# ioredis-mock: a stream entry has another ID than XADD was given, and the same
# ID can be added again.
#
# Packages: ioredis-mock 8.13.1, ioredis 5.11.1 (npm), redis-server
#   5:7.0.15-1~deb12u10 (Debian 12, unpacked in a temp folder).
# Guess: XADD with an ID stores this ID, and refuses one that is not larger than
#   the last, as Redis does. With * the ID begins with the time.
# Behaviour: the mock appends -0 to each ID, so MS-SEQ becomes MS-SEQ-0, and
#   XRANGE of MS-SEQ finds nothing. An ID is refused only if it is that of the
#   first entry. XREAD gives each ID to one reader, whatever position the next
#   one asks for. With * the IDs are 1-0, 2-0, 3-0. So code that lets the ID
#   decide whether work was done already is not tested by it.
# Seen 2026-11-29: after -5 and -6 of a millisecond, -6 and -4 are stored in the
#   mock and refused by Redis; a second XREAD from 0-0 has no entries.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error ioredis-mock@8.13.1 ioredis@5.11.1 >npm.log
apt-get -q download redis-server=5:7.0.15-1~deb12u10 redis-tools=5:7.0.15-1~deb12u10 >apt.log 2>&1
for deb in *.deb; do dpkg -x "$deb" root; done

cat >main.mjs <<'EOF'
import Redis from 'ioredis'
import Mock from 'ioredis-mock'
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'

const port = await new Promise((done) => {
  const s = createServer().listen(0, '127.0.0.1', () => {
    const p = s.address().port
    s.close(() => done(p))
  })
})
const options = ['--bind', '127.0.0.1', '--port', String(port), '--save', '']
const server = spawn('root/usr/bin/redis-server', options, { stdio: 'ignore' })
process.on('exit', () => server.kill())
const redis = new Redis({ host: '127.0.0.1', port })
redis.on('error', () => {})
await redis.ping()

for (const [name, client] of [['Redis', redis], ['ioredis-mock', new Mock()]]) {
  for (const seq of [5, 6, 6, 4]) {
    const id = `1795817000000-${seq}`
    const answer = await client.xadd('orders', id, 'n', String(seq)).catch(() => 'refused')
    console.log(`${name}: XADD ${id}: ${answer}`)
  }
  const id = '1795817000000-5'
  const found = (await client.xrange('orders', id, id)).length
  const first = (await client.xread('STREAMS', 'orders', '0-0'))?.[0][1].length
  const second = (await client.xread('STREAMS', 'orders', '0-0'))?.[0][1].length ?? 'nothing'
  console.log(`${name}: XRANGE of ${id} finds ${found}, XREAD from 0-0 ${first}, XREAD again ${second}`)
  const now = await client.xadd('events', '*', 'n', '1')
  console.log(`${name}: * is ${/^17\d{11}-0$/.test(now) ? 'the time' : now}`)
}
process.exit(0)
EOF
cat >want <<'EOF'
Redis: XADD 1795817000000-5: 1795817000000-5
Redis: XADD 1795817000000-6: 1795817000000-6
Redis: XADD 1795817000000-6: refused
Redis: XADD 1795817000000-4: refused
Redis: XRANGE of 1795817000000-5 finds 1, XREAD from 0-0 2, XREAD again 2
Redis: * is the time
ioredis-mock: XADD 1795817000000-5: 1795817000000-5-0
ioredis-mock: XADD 1795817000000-6: 1795817000000-6-0
ioredis-mock: XADD 1795817000000-6: 1795817000000-6-0
ioredis-mock: XADD 1795817000000-4: 1795817000000-4-0
ioredis-mock: XRANGE of 1795817000000-5 finds 0, XREAD from 0-0 3, XREAD again 0
ioredis-mock: * is 1-0
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "ioredis-mock-appends-to-stream-ids: no longer holds" >&2; exit 1; }
