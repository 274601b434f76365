#!/bin/sh
# sequelize: Model.max of a BIGINT column is a rounded number, the column
# itself an exact string.
#
# Packages: sequelize 6.37.8, pg 8.23.1, @electric-sql/pglite 0.5.14 behind
#   @electric-sql/pglite-socket 0.2.17 (npm).
# Guess: max() returns what the column returns: the exact decimal string of
#   the largest ID.
# Behaviour: max and min of an integer column go through parseFloat. Written
#   so, "where id > last" starts below the last ID and reads rows twice, or
#   starts above it and skips some.
# Seen 2026-11-28: findOne gives "1179183313482456071"; max and min give the
#   number 1179183313482456000, and a query for what is above it finds the row
#   again.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	sequelize@6.37.8 pg@8.23.1 @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 >npm.log

cat >main.mjs <<'EOF'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { createServer } from 'node:net'

const port = await new Promise((done) => {
  const s = createServer().listen(0, '127.0.0.1', () => {
    const p = s.address().port
    s.close(() => done(p))
  })
})
const pg = new PGlite()

import { DataTypes, Op, Sequelize } from 'sequelize'
await pg.exec('create table item (id bigint primary key); insert into item values (1179183313482456071)')
await new PGLiteSocketServer({ db: pg, host: '127.0.0.1', port }).start()
const db = new Sequelize(`postgres://postgres:x@127.0.0.1:${port}/postgres`,
  { logging: false, pool: { max: 1 }, define: { timestamps: false, freezeTableName: true } })
const Item = db.define('item', { id: { type: DataTypes.BIGINT, primaryKey: true } })
const row = await Item.findOne()
const max = await Item.max('id')
console.log('findOne', typeof row.id, row.id)
console.log('max', typeof max, max, '| min', await Item.min('id'))
console.log('rows above max:', await Item.count({ where: { id: { [Op.gt]: String(max) } } }))
process.exit(0)
EOF
cat >want <<'EOF'
findOne string 1179183313482456071
max number 1179183313482456000 | min 1179183313482456000
rows above max: 1
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "sequelize-max-rounds-what-find-does-not: no longer holds" >&2; exit 1; }
