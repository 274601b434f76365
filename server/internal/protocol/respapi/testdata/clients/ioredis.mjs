// Uses ioredis as its documentation does: node ioredis.mjs PORT.
import assert from "node:assert";
import { createRequire } from "node:module";
const require = createRequire(process.cwd() + "/");
const { Redis } = require("ioredis");

const r = new Redis(Number(process.argv[2]), "localhost", { connectionName: "test", retryStrategy: null });
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

// Its own methods. Integers above 2^53 are rounded, unless they are to be strings.
assert.ok((await r.incr("orders")) > 0);
assert.ok((await r.incrby("orders", 1)) > 0);
await assert.rejects(r.incrby("orders", 5), /NEXT orders 5/);
const exact = new Redis(Number(process.argv[2]), "127.0.0.1", { stringNumbers: true, retryStrategy: null });
const queued = exact.multi();
for (let i = 0; i < 1000; i++) queued.incr("orders");
const ids = (await queued.exec()).map(([err, id]) => err ?? id);
assert.equal(new Set(ids).size, 1000);
assert.ok(BigInt(await exact.incr("orders")) > BigInt(ids[999]));
await exact.quit();
await assert.rejects(r.multi().incr("orders").incrby("orders", 5).exec(), /EXECABORT/);
await r.multi({ pipeline: false });
assert.equal(await r.incr("orders"), "QUEUED");
assert.equal((await r.exec()).length, 1);
await r.multi({ pipeline: false });
assert.equal(await r.discard(), "OK");
assert.equal((await r.role())[0], "master");
assert.ok((await r.command()).some((c) => c[0] === "next"));
await r.quit();

// It has no mode for several servers of the same kind: a cluster is another thing.
const cluster = new Redis.Cluster([{ host: "127.0.0.1", port: Number(process.argv[2]) }], { clusterRetryStrategy: null });
cluster.on("error", () => {});
await assert.rejects(cluster.incr("orders"));
cluster.disconnect();
console.log("ok ioredis", require("ioredis/package.json").version);
