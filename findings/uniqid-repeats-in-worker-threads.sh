#!/bin/sh
# uniqid: two worker threads make the same IDs.
#
# Package: uniqid 5.4.0 (npm), Node's worker_threads. The clock is held still,
#   so that both threads meet the same millisecond.
# Guess: the ID holds something of the thread, or is random, as it is meant for
#   more than one process and machine.
# Behaviour: it is made of the network address, the process number and the
#   time, with the last time in a variable of the module. Threads share the
#   first two and not the third, so in one millisecond their IDs are equal.
# Seen 2026-11-28: 1,000 of 1,000 IDs of the second thread are those of the
#   first.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	uniqid@5.4.0 >npm.log

cat >main.mjs <<'EOF'
import { Worker } from 'node:worker_threads'

const source = `
  Date.now = () => 1764300000000
  const uniqid = require('uniqid')
  require('node:worker_threads').parentPort.postMessage(Array.from({ length: 1000 }, () => uniqid()))
`
const run = () => new Promise((resolve) => new Worker(source, { eval: true }).once('message', resolve))
const [first, second] = await Promise.all([run(), run()])
console.log('distinct in one thread', new Set(first).size)
console.log('distinct in both', new Set([...first, ...second]).size)
EOF
cat >want <<'EOF'
distinct in one thread 1000
distinct in both 1000
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "uniqid-repeats-in-worker-threads: no longer holds" >&2; exit 1; }
