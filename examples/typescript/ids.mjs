import { randomBytes } from "node:crypto";
import { Client, Typed, Veiled } from "@firnid/client";

const client = new Client(["http://127.0.0.1:3476", "http://127.0.0.1:3477"]);
const orders = client.sequencer("orders");

const id = await orders.next(); // a bigint, such as 117383499776000003n
const ten = await orders.take(10); // an array, made now
console.log(id, ten.length);

const order = new Typed("order");
console.log(order.parse(order.format(id)) === id); // order_03887nf7a8003

const keys = randomBytes(32).toString("hex"); // a program reads its key file
const shared = new Veiled(keys, "orders");
console.log(shared.parse(shared.format(id)) === id); // v1_ and 13 digits that look random
await client.close();
