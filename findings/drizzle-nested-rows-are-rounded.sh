#!/bin/sh
# drizzle-orm: the same bigint column is exact at the top level and rounded
# in nested rows.
#
# Packages: drizzle-orm 0.45.4, @electric-sql/pglite 0.5.17 (npm).
# Guess: a column declared bigint({mode: "bigint"}) gives an exact bigint
#   wherever the row is read; that is why the mode is chosen.
# Behaviour: a relational query fetches nested rows as one JSON document,
#   which JSON.parse reads; the mode then makes a bigint of the rounded
#   number. The result has the right type and the wrong ID. The related row
#   cannot be found by it.
# Seen 2026-11-28: id 1179183313482456071 at the top, …064 in the row nested
#   below it, and the row …072 is also …064 there.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	drizzle-orm@0.45.4 @electric-sql/pglite@0.5.17 >npm.log

cat >main.mjs <<'EOF'
import { PGlite } from '@electric-sql/pglite'
import { relations } from 'drizzle-orm'
import { bigint, pgTable } from 'drizzle-orm/pg-core'
import { drizzle } from 'drizzle-orm/pglite'

const big = (name) => bigint(name, { mode: 'bigint' })
const shops = pgTable('shops', { id: big('id').primaryKey() })
const items = pgTable('items', { id: big('id').primaryKey(), shop: big('shop') })
const shopsHave = relations(shops, ({ many }) => ({ items: many(items) }))
const itemsHave = relations(items, ({ one }) => ({
  of: one(shops, { fields: [items.shop], references: [shops.id] }),
}))
const pg = new PGlite()
await pg.exec(`create table shops (id bigint primary key);
  create table items (id bigint primary key, shop bigint);
  insert into shops values (1179183313482456071);
  insert into items values (1179183313482456072, 1179183313482456071);`)
const db = drizzle(pg, { schema: { shops, items, shopsHave, itemsHave } })
const [shop] = await db.query.shops.findMany({ with: { items: true } })
console.log('shop', shop.id, '| nested item', shop.items[0].id)
const [item] = await db.query.items.findMany({ with: { of: true } })
console.log('item', item.id, '| nested shop', item.of.id)
process.exit(0)
EOF
cat >want <<'EOF'
shop 1179183313482456071n | nested item 1179183313482456064n
item 1179183313482456072n | nested shop 1179183313482456064n
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "drizzle-nested-rows-are-rounded: no longer holds" >&2; exit 1; }
