import { customType, integer, pgTable, text, type PgDatabase, type PgQueryResultHKT } from "drizzle-orm/pg-core";
import { Typed, type Sequencers } from "@firnid/client";

export const order = new Typed("order");

/** A bigint in the database, order_… in TypeScript and JSON. */
const orderId = customType<{ data: string; driverData: bigint | string | number }>({
  dataType: () => "bigint",
  toDriver: (text) => order.parse(text),
  fromDriver: (id) => {
    if (typeof id === "number") throw new TypeError("JSON has rounded an ID: use a join instead of with");
    return order.format(BigInt(id));
  },
});

export const orders = pgTable("orders", {
  id: orderId().primaryKey(),
  shop: integer().notNull(),
  item: text().notNull(),
});

/** Stores an order for each item. */
export async function place(db: Pick<PgDatabase<PgQueryResultHKT>, "insert">, ids: Sequencers, shop: number, items: string[]) {
  const made = await ids.sequencer("orders").take(items.length);
  const rows = made.map((id, i) => ({ id: order.format(id), shop, item: items[i] ?? "" }));
  return db.insert(orders).values(rows).returning();
}
