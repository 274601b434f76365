// Uses redis, Redis' own client for Node, as its documentation does: node node_redis.mjs PORT.
import assert from "node:assert";
import { createRequire } from "node:module";
const require = createRequire(process.cwd() + "/");
const { createClient } = require("redis");

for (const RESP of [2, 3]) {
  const r = createClient({ url: "redis://127.0.0.1:" + process.argv[2], RESP, name: "test" });
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
  await r.close();
}
console.log("ok node-redis", require("redis/package.json").version);
