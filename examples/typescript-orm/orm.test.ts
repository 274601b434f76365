import assert from "node:assert/strict";
import { before, after, test } from "node:test";
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { PrismaPg } from "@prisma/adapter-pg";
import { DataSource } from "typeorm";
import { FakeClient } from "@firnid/client/testing";
import { PrismaClient } from "./generated/client.ts";
import { order, place, withText } from "./prisma.ts";
import { Order } from "./typeorm.ts";

const [first, second, third] = [65592203673604097n, 65592203673604098n, 65592203673604099n];
const postgres = new PGlite();
const server = new PGLiteSocketServer({ db: postgres, port: 0, host: "127.0.0.1", maxConnections: 10 });
let url = "";

before(async () => {
  await postgres.exec("CREATE TABLE orders (id bigint PRIMARY KEY, item text NOT NULL)");
  await server.start();
  url = `postgres://postgres@${server.getServerConn()}/postgres?sslmode=disable`;
});
after(async () => {
  await server.stop();
  await postgres.close();
});

const stored = async () => (await postgres.query<{ id: string }>("DELETE FROM orders RETURNING id::text")).rows.map((row) => row.id).sort();

test("Prisma", async () => {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 1 }) });
  const orders = new FakeClient({ node: 1 }).sequencer("orders");
  const tea = await withText(prisma).order.create({ data: { id: await orders.next(), item: "tea" } });
  assert.deepEqual([tea.id, tea.text, tea.item], [first, order.format(first), "tea"]);
  await place(prisma, orders, ["cup", "pot"]);
  assert.deepEqual((await prisma.order.findMany({ orderBy: { id: "asc" } })).map((o) => o.id), [first, second, third]);
  await prisma.$disconnect();
  assert.deepEqual(await stored(), [first, second, third].map(String));
});

test("TypeORM", async () => {
  const db = await new DataSource({ type: "postgres", url, entities: [Order], poolSize: 1 }).initialize();
  Order.ids = new FakeClient({ node: 1 }).sequencer("orders");
  const orders = db.getRepository(Order);
  const tea = await orders.save(orders.create({ item: "tea" }));
  await orders.save(orders.create({ item: "cup" }));
  await orders.insert(orders.create({ item: "pot" }));
  assert.equal(tea.id, order.format(first));
  assert.deepEqual(await orders.findOneBy({ id: order.format(second) }), orders.create({ id: order.format(second), item: "cup" }));
  assert.equal(JSON.stringify(await orders.find({ order: { id: "ASC" }, take: 1 })), `[{"id":"${order.format(first)}","item":"tea"}]`);
  await db.destroy();
  assert.deepEqual(await stored(), [first, second, third].map(String));
});
