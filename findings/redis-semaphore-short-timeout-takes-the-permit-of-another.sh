#!/bin/sh
# redis-semaphore: a holder with a shorter lockTimeout takes the permits of the
# others.
#
# Packages: redis-semaphore 5.8.0, ioredis 6.0.0 (npm), redis-server
#   5:7.0.15-1~deb12u10 (Debian 12, unpacked in a temp folder).
# Guess: lockTimeout is how long the permit of that holder lasts without a
#   refresh. A job of minutes and a request of a second share a Semaphore, each
#   with its own lockTimeout.
# Behaviour: Semaphore removes all permits that are older than the lockTimeout
#   of the caller, and gives the whole key that lockTimeout as its expiry. So a
#   short one takes the only permit from a holder whose refresh is not due; and
#   a short one that has come and gone makes Redis forget all permits. The
#   first holder learns at its next refresh, after 0.8 of its lockTimeout. A
#   Mutex, and Semaphores with one lockTimeout, are right.
# Seen 2026-11-29: two holders of a Semaphore of 1, three of a Semaphore of 2,
#   1.5 s after the first acquired it for 60 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	redis-semaphore@5.8.0 ioredis@6.0.0 >npm.log
apt-get -q download redis-server=5:7.0.15-1~deb12u10 redis-tools=5:7.0.15-1~deb12u10 >apt.log 2>&1
for deb in *.deb; do dpkg -x "$deb" root; done

cat >main.mjs <<'EOF'
import Redis from 'ioredis'
import { Mutex, Semaphore } from 'redis-semaphore'
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

const job = { lockTimeout: 60000, acquireAttemptsLimit: 1 }
const request = { lockTimeout: 1000, acquireAttemptsLimit: 1 }
const older = () => new Promise((done) => setTimeout(done, 1500))
const holders = (...all) => all.filter((one) => one.isAcquired).length

for (const [name, make] of Object.entries({
  Mutex: (key, o) => new Mutex(redis, key, o),
  'Semaphore of 1': (key, o) => new Semaphore(redis, key, 1, o),
})) {
  for (const second of [job, request]) {
    const key = `${name}, ${second.lockTimeout}`
    const [a, b] = [job, second].map((o) => make(key, o))
    await a.tryAcquire()
    await older()
    await b.tryAcquire()
    console.log(`${name}, 60 s and ${second.lockTimeout / 1000} s: ${holders(a, b)} of 2 hold it`)
  }
}

const [a, b, c, d] = [job, request, job, job].map((o) => new Semaphore(redis, 'two', 2, o))
await a.tryAcquire()
await b.tryAcquire()
await b.release()
await older()
console.log(`Semaphore of 2, after one of 1 s has come and gone: key in Redis ${await redis.exists('semaphore:two')}`)
await c.tryAcquire()
await d.tryAcquire()
console.log(`Semaphore of 2: ${holders(a, c, d)} of 3 hold it`)
process.exit(0)
EOF
cat >want <<'EOF'
Mutex, 60 s and 60 s: 1 of 2 hold it
Mutex, 60 s and 1 s: 1 of 2 hold it
Semaphore of 1, 60 s and 60 s: 1 of 2 hold it
Semaphore of 1, 60 s and 1 s: 2 of 2 hold it
Semaphore of 2, after one of 1 s has come and gone: key in Redis 0
Semaphore of 2: 3 of 3 hold it
EOF

timeout 60 node main.mjs >got
cat got
diff want got >&2 || { echo "redis-semaphore-short-timeout-takes-the-permit-of-another: no longer holds" >&2; exit 1; }
