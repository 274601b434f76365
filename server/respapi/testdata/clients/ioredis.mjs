// Uses ioredis as its documentation does: node ioredis.mjs PORT.
import assert from "node:assert";
import { createRequire } from "node:module";
const require = createRequire(process.cwd() + "/");
const { Redis } = require("ioredis");

const r = new Redis(Number(process.argv[2]), "127.0.0.1", { connectionName: "test", retryStrategy: null });
assert.equal(await r.ping(), "PONG");
const one = await r.call("NEXT", "orders");
assert.match(one, /^[0-9]+$/);
const three = await r.call("NEXT", "orders", 3);
assert.equal(three.length, 3);
assert.ok(BigInt(one) < BigInt(three[0]) && BigInt(three[1]) < BigInt(three[2]));
const pipe = r.pipeline();
for (let i = 0; i < 1000; i++) pipe.call("NEXT", "orders");
const many = await pipe.exec();
assert.equal(new Set(many.map(([err, id]) => err ?? id)).size, 1000);
const packed = await r.callBuffer("NEXTB", "orders", 1000);
assert.equal(packed.length, 8000);
assert.ok(packed.readBigUInt64BE(0) > BigInt(many[999][1]));
assert.equal((await r.call("INSPECT", one))[1], "default");
assert.match(await r.info(), /firn_version/);
assert.equal(await r.client("GETNAME"), "test");
await assert.rejects(r.call("NEXT", "a/b"), /a name has 1 to 128 characters/);
await assert.rejects(r.set("a", "b"), /unknown command 'set'/i);
await r.quit();
console.log("ok ioredis", require("ioredis/package.json").version);
