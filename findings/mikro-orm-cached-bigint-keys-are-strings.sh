#!/bin/sh
# MikroORM: a bigint key is a bigint from the database and a string from the
# result cache.
#
# Packages: @mikro-orm/core 7.2.5, @mikro-orm/postgresql 7.2.5,
#   @electric-sql/pglite 0.5.14, @electric-sql/pglite-socket 0.2.17 (npm).
# Guess: a find with `cache` returns the same values when they come from the
#   cache; Date properties of a cached entity are Dates again.
# Behaviour: a property of type bigint, which the ORM maps to a JavaScript
#   bigint, is a string in an entity that comes from the result cache, also as
#   the key. So === and Map keys work until the second call within the time
#   of the cache. The same second call returns a Date for a Date property.
# Seen 2026-11-28: bigint and Date at the first find, string and Date at the
#   second; a Set of the first IDs has none of the second ones.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	@mikro-orm/core@7.2.5 @mikro-orm/postgresql@7.2.5 \
	@electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 >npm.log

cat >main.mjs <<'EOF'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { EntitySchema, MikroORM } from '@mikro-orm/postgresql'

const free = createServer().listen(0, '127.0.0.1')
await once(free, 'listening')
const { port } = free.address()
free.close()
await once(free, 'close')

const db = await PGlite.create()
await db.exec(`create table "order" (id bigint primary key, at timestamptz);
  insert into "order" values (1179183313482456071, '2026-11-28')`)
const server = new PGLiteSocketServer({ db, port, host: '127.0.0.1' })
await server.start()

class Order {}
const schema = new EntitySchema({
  class: Order,
  properties: { id: { type: 'bigint', primary: true }, at: { type: 'Date' } },
})
const orm = await MikroORM.init({
  entities: [schema],
  clientUrl: `postgresql://postgres@127.0.0.1:${port}/postgres`,
  pool: { min: 1, max: 1 },
})
const find = () => orm.em.fork().find(Order, {}, { cache: 3_600_000 })
const [first] = await find()
const [second] = await find()
for (const o of [first, second]) {
  console.log(typeof o.id, String(o.id), o.at instanceof Date)
}
console.log(first.id === second.id, new Set([first.id]).has(second.id))
process.exit(0)
EOF
cat >want <<'EOF'
bigint 1179183313482456071 true
string 1179183313482456071 true
false false
EOF

node main.mjs 2>err.log >got
cat got
diff want got >&2 || { echo "mikro-orm-cached-bigint-keys-are-strings: no longer holds" >&2; exit 1; }
