import { Typed, type Sequencer } from "@firnid/client";
import type { PrismaClient } from "./generated/client.ts";

export const order = new Typed("order");

/** Adds the text of an order's ID, because JSON has no bigint. */
export const withText = (prisma: PrismaClient) =>
  prisma.$extends({
    result: { order: { text: { needs: { id: true }, compute: ({ id }) => order.format(id) } } },
  });

/** Stores an order for each item. */
export async function place(db: PrismaClient, orders: Sequencer<bigint>, items: string[]) {
  const ids = await orders.take(items.length);
  return db.order.createMany({ data: items.map((item, i) => ({ id: ids[i]!, item })) });
}
