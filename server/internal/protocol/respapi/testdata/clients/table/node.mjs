// Clients for Node and Bun: node.mjs CLIENT PORT, in a directory with node_modules.
import { createRequire } from "node:module";
const require = createRequire(process.cwd() + "/");
const [client, port] = [process.argv[2], Number(process.argv[3])];
const silence = () => new Promise((done) => setTimeout(done, 1000 * process.env.SILENT));

async function run(call, incr) {
  await silence();
  console.log("next", String(await call("NEXT", "orders")));
  console.log("three", ...[await call("NEXT", "orders", "3")].flat().map(String));
  for (let i = 0; i < 100; i++) console.log("incr", String(BigInt(await incr("orders"))));
}

async function redis(options) {
  const r = require("redis").createClient({ url: "redis://127.0.0.1:" + port, ...options });
  r.on("error", (e) => console.log("error", e.message));
  await r.connect();
  return r;
}

const clients = {
  async ioredis(options = {}, name = "ioredis") {
    const Redis = require(name).Redis;
    const r = new Redis(port, "127.0.0.1", options);
    await run((...a) => r.call(...a), (n) => r.incr(n));
  },
  "ioredis-strings": () => clients.ioredis({ stringNumbers: true }),
  iovalkey: () => clients.ioredis({}, "iovalkey"),
  "iovalkey-strings": () => clients.ioredis({ stringNumbers: true }, "iovalkey"),
  async "ioredis-cluster"() {
    const c = new (require("ioredis").Cluster)([{ host: "127.0.0.1", port }], { clusterRetryStrategy: () => null });
    c.on("error", () => {});
    await c.incr("orders");
    console.log("next");
  },
  async "ioredis-sentinel"() {
    const r = new (require("ioredis").Redis)({ sentinels: [{ host: "127.0.0.1", port }], name: "m", sentinelRetryStrategy: () => null });
    r.on("error", () => {});
    await r.incr("orders");
    console.log("next");
  },
  async "node-redis"(options = {}) {
    const r = await redis(options);
    await run((...a) => r.sendCommand(a), (n) => r.incr(n));
  },
  "node-redis-cache": () => clients["node-redis"]({ RESP: 3, clientSideCache: { maxEntries: 10, ttl: 0 } }),
  async "node-redis-strings"() {
    const { RESP_TYPES } = require("redis");
    const r = (await redis({})).withTypeMapping({ [RESP_TYPES.NUMBER]: String });
    await run((...a) => r.sendCommand(a), (n) => r.incr(n));
  },
  async "node-redis-cluster"() {
    const c = require("redis").createCluster({ rootNodes: [{ url: "redis://127.0.0.1:" + port }] });
    c.on("error", () => {});
    await c.connect();
    console.log("next");
  },
  async "node-redis-sentinel"() {
    const s = require("redis").createSentinel({ name: "m", sentinelRootNodes: [{ host: "127.0.0.1", port }], scanInterval: 0 });
    s.on("error", () => {});
    await s.connect();
    console.log("next");
  },
  async glide() {
    const { GlideClient } = require("@valkey/valkey-glide");
    const r = await GlideClient.createClient({ addresses: [{ host: "127.0.0.1", port }] });
    await run((...a) => r.customCommand(a), (n) => r.incr(n));
  },
  async bun() {
    const r = new Bun.RedisClient("redis://127.0.0.1:" + port);
    await run((name, ...a) => r.send(name, a), (n) => r.incr(n));
  },
};

try {
  await clients[client]();
} catch (e) {
  console.log("error", e?.message);
}
process.exit(0);
