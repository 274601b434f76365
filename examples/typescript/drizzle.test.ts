import assert from "node:assert/strict";
import { test } from "node:test";
import { PGlite } from "@electric-sql/pglite";
import { eq, relations } from "drizzle-orm";
import { integer, pgTable } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/pglite";
import { FakeClient } from "@firnid/client/testing";
import { order, orders, place } from "./drizzle.js";

const shops = pgTable("shops", { id: integer().primaryKey() });
const ordersOfShop = relations(shops, ({ many }) => ({ orders: many(orders) }));
const shopOfOrder = relations(orders, ({ one }) => ({ shop: one(shops, { fields: [orders.shop], references: [shops.id] }) }));

test("orders have typed text in TypeScript and numbers in PostgreSQL", async (t) => {
  const postgres = new PGlite();
  t.after(() => postgres.close());
  await postgres.exec(`
    CREATE TABLE shops (id integer PRIMARY KEY);
    CREATE TABLE orders (id bigint PRIMARY KEY, shop integer NOT NULL, item text NOT NULL);
    INSERT INTO shops VALUES (1)`);
  const db = drizzle(postgres, { schema: { shops, orders, ordersOfShop, shopOfOrder } });

  const rows = await place(db, new FakeClient({ node: 1 }), 1, ["tea", "cup"]);
  const [tea, cup] = [65592203673604097n, 65592203673604098n];
  assert.deepEqual(rows, [
    { id: order.format(tea), shop: 1, item: "tea" },
    { id: order.format(cup), shop: 1, item: "cup" },
  ]);
  assert.deepEqual(await db.select().from(orders).where(eq(orders.id, order.format(cup))), [rows[1]]);
  const { rows: stored } = await postgres.query("SELECT id::text FROM orders ORDER BY id");
  assert.deepEqual(stored, [{ id: String(tea) }, { id: String(cup) }]);
  const joined = await db.select().from(shops).innerJoin(orders, eq(orders.shop, shops.id));
  assert.deepEqual(joined.map((row) => row.orders), rows);
  await assert.rejects(db.query.shops.findMany({ with: { orders: true } }), /JSON has rounded an ID/);
});
