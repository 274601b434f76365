#!/bin/sh
# bullmq: some decimal IDs are refused as jobId: one of 16 near 10^17, one of
# 128 near 10^18.
#
# Packages: bullmq 6.7.0, ioredis 5.11.1 (npm), redis-server
#   5:7.0.15-1~deb12u10 (Debian 12, unpacked in a temp folder).
# Guess: a jobId is any string without ":", or no integer at all; one rule for
#   all decimal IDs.
# Behaviour: integers are to be refused, but the test is that
#   String(parseInt(id)) equals the ID. This holds for one ID of each double:
#   all up to 2^53, then fewer the larger they are. A test with a real ID
#   passes, and in production some jobs throw.
# Seen 2026-11-28: 2126436736914423808 is accepted, 2126436736914424000 throws
#   "Custom Id cannot be integers"; of 1,000,000 IDs 62,500 near 10^17 and
#   7,812 near 10^18 meet the test.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	bullmq@6.7.0 ioredis@5.11.1 >npm.log
apt-get -q download redis-server=5:7.0.15-1~deb12u10 redis-tools=5:7.0.15-1~deb12u10 >apt.log 2>&1
for deb in *.deb; do dpkg -x "$deb" root; done

cat >main.mjs <<'EOF'
import { Queue } from 'bullmq'
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'

const port = await new Promise((done) => {
  const s = createServer().listen(0, '127.0.0.1', () => {
    const p = s.address().port
    s.close(() => done(p))
  })
})
const redis = spawn('root/usr/bin/redis-server', ['--bind', '127.0.0.1', '--port', String(port), '--save', ''], { stdio: 'ignore' })
process.on('exit', () => redis.kill())
const queue = new Queue('orders', { connection: { host: '127.0.0.1', port } })
queue.on('error', () => {})
for (const jobId of ['2126436736914423808', '2126436736914423999', '2126436736914424000']) {
  await queue.add('pay', {}, { jobId }).then((job) => console.log(jobId, 'added as', job.id), (e) => console.log(jobId, e.message))
}
for (const digits of [17n, 18n]) {
  let refused = 0
  for (let i = 0n; i < 1000000n; i++) {
    const id = String(10n ** digits + i * 7919n * 1000003n)
    if (String(parseInt(id, 10)) === id) refused++
  }
  console.log(`of 1000000 IDs near 10^${digits} equal to String(parseInt(id)): ${refused}`)
}
await queue.close()
process.exit(0)
EOF
cat >want <<'EOF'
2126436736914423808 added as 2126436736914423808
2126436736914423999 added as 2126436736914423999
2126436736914424000 Custom Id cannot be integers
of 1000000 IDs near 10^17 equal to String(parseInt(id)): 62500
of 1000000 IDs near 10^18 equal to String(parseInt(id)): 7812
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "bullmq-refuses-some-decimal-ids: no longer holds" >&2; exit 1; }
