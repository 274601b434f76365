import { Client } from "@firnid/client";

const client = new Client(["http://127.0.0.1:3476"]);
const orders = client.sequencer("orders");

console.log(await orders.next()); // a bigint, such as 118277211164393472n
console.log(await orders.take(10)); // an array of ten, made now
for await (const id of orders) {
  console.log(id);
  if (id % 10n === 0n) break;
}
await client.close();
