// Uses redis, Redis' own client for Node, as its documentation does: node node_redis.mjs PORT.
import assert from "node:assert";
import { createRequire } from "node:module";
const require = createRequire(process.cwd() + "/");
const { createClient, createCluster } = require("redis");

for (const RESP of [2, 3]) {
  const r = createClient({ url: "redis://localhost:" + process.argv[2], RESP, name: "test" });
  r.on("error", (err) => { throw err; });
  await r.connect();
  assert.equal(await r.ping(), "PONG");
  const one = await r.sendCommand(["NEXT", "orders"]);
  assert.match(one, /^[0-9]+$/);
  const three = await r.sendCommand(["NEXT", "orders", "3"]);
  assert.ok(BigInt(one) < BigInt(three[0]) && BigInt(three[1]) < BigInt(three[2]));
  const many = await Promise.all(Array.from({ length: 1000 }, () => r.sendCommand(["NEXT", "orders"])));
  assert.equal(new Set(many).size, 1000);
  assert.match(await r.info(), /firn_version/);
  assert.equal(await r.clientGetName(), "test");
  await assert.rejects(r.sendCommand(["NEXT", "a/b"]), /a name has 1 to 128 characters/);
  await assert.rejects(r.set("a", "b"), /unknown command 'SET'/i);

  // Its own methods. Integers above 2^53 are rounded.
  assert.ok((await r.incr("orders")) > 0);
  assert.ok((await r.incrBy("orders", 1)) > 0);
  await assert.rejects(r.incrBy("orders", 5), /NEXT orders 5/);
  const ids = await r.multi().addCommand(["NEXT", "orders"]).incr("orders").addCommand(["NEXT", "orders"]).exec();
  assert.ok(BigInt(ids[0]) < BigInt(ids[2]));
  await assert.rejects(r.multi().incr("orders").incrBy("orders", 5).exec());
  assert.equal((await r.multi().incr("orders").incr("orders").execAsPipeline()).length, 2);
  assert.equal((await r.role()).role, "master");
  assert.equal((await r.clientInfo()).name, "test");
  assert.ok((await r.command()).some((c) => c.name === "next"));
  assert.equal((await r.commandInfo(["next"]))[0].arity, -2);
  const hello = await r.hello();
  assert.deepEqual([hello.server, Number(hello.proto), hello.mode, hello.role], ["redis", RESP, "standalone", "master"]);
  await r.close();
}

// It has no mode for several servers of the same kind: a cluster is another thing.
const cluster = createCluster({ rootNodes: [{ url: "redis://127.0.0.1:" + process.argv[2] }] });
cluster.on("error", () => {});
await assert.rejects(cluster.connect());
cluster.destroy();
console.log("ok node-redis", require("redis/package.json").version);
