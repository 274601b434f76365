#!/bin/sh
# sequelize: findAll with include returns one row for two rows with composite
# keys.
#
# Packages: sequelize 6.37.8, pg 8.23.1, @electric-sql/pglite 0.5.14 behind
#   @electric-sql/pglite-socket 0.2.17 (npm).
# Guess: two rows with the primary keys (1, 11) and (11, 1) come back as two
#   rows, with or without include.
# Behaviour: to group the rows of a join, a key is made of the primary key
#   columns without anything between them. "1"+"11" equals "11"+"1": the
#   second parent replaces the first and gets its children. Any (tenant, ID)
#   key can meet this.
# Seen 2026-11-28: 2 rows without include, 1 with it; that one has the items
#   of both.
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

import { DataTypes, Sequelize } from 'sequelize'
await pg.exec(`create table shop (tenant bigint, id bigint, primary key (tenant, id));
  create table item (id bigint primary key, shop_id bigint);
  insert into shop values (1, 11), (11, 1);
  insert into item values (100, 11), (200, 1);`)
await new PGLiteSocketServer({ db: pg, host: '127.0.0.1', port }).start()
const db = new Sequelize(`postgres://postgres:x@127.0.0.1:${port}/postgres`,
  { logging: false, pool: { max: 1 }, define: { timestamps: false, freezeTableName: true } })
const key = () => ({ type: DataTypes.BIGINT, primaryKey: true })
const Shop = db.define('shop', { tenant: key(), id: key() })
const Item = db.define('item', { id: key(), shop_id: DataTypes.BIGINT })
Shop.hasMany(Item, { foreignKey: 'shop_id', sourceKey: 'id', constraints: false })
const order = [['tenant', 'asc']]
console.log('plain  ', JSON.stringify(await Shop.findAll({ order })))
console.log('include', JSON.stringify(await Shop.findAll({ order: [...order, [Item, 'id', 'asc']], include: Item })))
process.exit(0)
EOF
cat >want <<'EOF'
plain   [{"tenant":"1","id":"11"},{"tenant":"11","id":"1"}]
include [{"tenant":"1","id":"11","items":[{"id":"100","shop_id":"11"},{"id":"200","shop_id":"1"}]}]
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "sequelize-include-merges-two-parents: no longer holds" >&2; exit 1; }
