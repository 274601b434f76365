#!/bin/sh
# IndexedDB: one stored ID of 2^53 or more ends autoIncrement for good.
#
# Package: fake-indexeddb 6.2.8 (npm), which follows the W3C text; browsers do
#   the same.
# Guess: the key generator continues after the largest key, or ignores keys
#   that it did not make.
# Behaviour: a given numeric key sets the generator to that key plus one, up to
#   2^53, and a generator at 2^53 makes no more keys. Each later add without a
#   key is a ConstraintError, also after the row was deleted and the store
#   cleared. An ID stored as text does not touch the generator.
# Seen 2026-11-28: add after a 19-digit key fails, and fails after clear.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	fake-indexeddb@6.2.8 >npm.log

cat >main.mjs <<'EOF'
import 'fake-indexeddb/auto'

const done = (request) =>
  new Promise((resolve) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = (event) => {
      event.preventDefault()
      resolve(request.error.name)
    }
  })

const opening = indexedDB.open('shop', 1)
opening.onupgradeneeded = () => {
  for (const name of ['numbers', 'texts']) opening.result.createObjectStore(name, { keyPath: 'id', autoIncrement: true })
}
const db = await done(opening)
const run = (name, step) => done(step(db.transaction(name, 'readwrite').objectStore(name)))

for (const [name, id] of [['texts', '1179183313482456071'], ['numbers', Number('1179183313482456071')]]) {
  console.log(name, 'add without a key:', await run(name, (s) => s.add({})))
  console.log(name, 'add with an ID:', await run(name, (s) => s.add({ id })))
  console.log(name, 'add without a key:', await run(name, (s) => s.add({})))
  await run(name, (s) => s.clear())
  console.log(name, 'add after clear:', await run(name, (s) => s.add({})))
}
EOF
cat >want <<'EOF'
texts add without a key: 1
texts add with an ID: 1179183313482456071
texts add without a key: 2
texts add after clear: 3
numbers add without a key: 1
numbers add with an ID: 1179183313482456000
numbers add without a key: ConstraintError
numbers add after clear: ConstraintError
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "indexeddb-one-large-key-ends-autoincrement: no longer holds" >&2; exit 1; }
