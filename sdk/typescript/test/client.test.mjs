import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { AnswerError, Client, ClosedError, FirnError, format, ServerError, Typed, UnavailableError, Veiled } from "@firnid/client";
import { FakeClient } from "@firnid/client/testing";
import { faultOf } from "../dist/answer.js";
import { answer, hang, ids, json, nobody, pack, problem, serve, serveBytes, until } from "./servers.mjs";

/** Makes a client that is closed at the end of the test. */
function open(/** @type {import("node:test").TestContext} */ t, /** @type {string[]} */ servers, /** @type {import("@firnid/client").ClientOptions} */ options = {}) {
  const client = new Client(servers, options);
  t.after(() => client.close());
  return client;
}

/** Returns the reason of a promise that must be rejected. @returns {Promise<any>} */
async function reason(/** @type {Promise<unknown>} */ promise) {
  return promise.then(
    (value) => assert.fail(`fulfilled with ${value}`),
    (error) => error,
  );
}

test("next, take and iteration give IDs in order, each once", async (t) => {
  const server = await serve(t, ids);
  const s = open(t, [server.url]).sequencer("orders");
  const all = [await s.next()];
  assert.equal(typeof all[0], "bigint");
  for await (const id of s) if (all.push(id) === 500) break;
  while (all.length < 1000) all.push(s.tryNext() ?? (await s.next()));
  assert.deepEqual(all, [...new Set(all)].sort((a, b) => Number(a - b)));
  const taken = await s.take(10);
  assert.equal(taken.length, 10);
  assert.equal(new Set([...all, ...taken]).size, 1010);
  assert.equal(server.connections <= 2, true, "connections are kept");
});

test("take and array split, and a client can be disposed of", async (t) => {
  const server = await serve(t, ids);
  const client = open(t, [server.url]);
  const all = await client.sequencer("orders").take(250_000);
  const more = await client.sequencer("orders").array(250_000);
  assert.ok(more instanceof BigUint64Array);
  assert.deepEqual([...more], all.map((_, i) => (all[0] ?? 0n) + 250_000n + BigInt(i)));
  assert.deepEqual(server.counts, [100_000, 100_000, 50_000, 100_000, 100_000, 50_000]);
  await client[Symbol.asyncDispose]();
  assert.throws(() => client.sequencer("orders").tryNext(), ClosedError);
});

test("array reads runs, and packed IDs of layouts without", async (t) => {
  const server = await serve(t, ids);
  const s = open(t, [server.url]).sequencer("orders");
  const runs = (/** @type {unknown[]} */ ...all) => (server.handler = (request, response) => json(request, response, { runs: all }));
  runs({ first: "00000001fffffffe", step: "4294967297", count: 2 }, { first: "fedcba9876543210", step: "1", count: 1 });
  assert.deepEqual(await s.array(3), BigUint64Array.of(0x1fffffffen, 0x2ffffffffn, 0xfedcba9876543210n));
  runs({ first: "00000001ffffffff", step: "1", count: 3 });
  assert.deepEqual(await s.array(3), BigUint64Array.of(0x1ffffffffn, 0x200000000n, 0x200000001n));
  const run = { first: "0000000000000005", step: "1", count: 3 };
  for (const [wrong, want] of /** @type {[unknown[], RegExp][]} */ ([
    [[{ ...run, count: 2 }], /it has 2 IDs, not the 3 requested/],
    [[], /it has 0 IDs, not the 3/],
    [[run, run], /it has more IDs than the 3 requested/],
    [[{ ...run, count: 2 }, { ...run, count: 1 }], /it contains an ID twice/],
    [[{ ...run, first: "0000000000000000" }], /the ID 0, which is never made/],
    [[{ ...run, first: "fffffffffffffffe" }], /a run exceeds the greatest ID/],
    [[{ ...run, step: "9223372036854775807" }], /a run exceeds the greatest ID/],
    [[{ ...run, first: "0".repeat(31) + "1" }], /IDs of 128 bits: use the client's method sequencer128/],
    ...[{ first: "5" }, { first: 5 }, { step: "0" }, { step: -1 }, { count: 0 }, { count: 1.5 }, { count: -3 }].map((part) => [[{ ...run, ...part }], /its runs cannot be read: "{\\"runs/]),
    [[null], /its runs cannot be read/],
  ])) {
    runs(...wrong);
    const e = await reason(s.array(3));
    assert.ok(e.errors[0] instanceof AnswerError, e.message);
    assert.match(e.message, want);
  }
  // No error for a layout without runs, and one request for which the server has none.
  server.handler = (request, response, count) => (request.url?.includes("runs=") ? problem(400, "no-runs")(request, response, count) : ids(request, response, count));
  const before = server.counts.length;
  const all = await s.array(200_000);
  assert.deepEqual([...all], [...all.keys()].map((i) => (all[0] ?? 0n) + BigInt(i)));
  server.handler = (request, response) => answer(request, response, Buffer.from("fedcba9876543210", "hex"));
  assert.deepEqual(await s.array(1), BigUint64Array.of(0xfedcba9876543210n));
  assert.deepEqual(server.counts.slice(before), [100_000, 100_000, 100_000, 1]);
});

test("CommonJS can require the package", () => {
  const cjs = createRequire(import.meta.url)("@firnid/client");
  assert.equal(new cjs.Typed("order").format(117383499776000003n), "order_03887nf7a8003");
  assert.notEqual(cjs.Client, Client, "a build of its own");
});

test("128-bit IDs are strings", async (t) => {
  const server = await serve(t, (request, response, count) => answer(request, response, Buffer.alloc(16 * count, "0123456789abcdef0123456789abcde", "hex").fill(pack(1), 8, 16)));
  const s = open(t, [server.url]).sequencer128("traces");
  assert.match((await s.take(1))[0] ?? "", /^01234567-89ab-cdef-[0-9a-f]{4}-[0-9a-f]{12}$/);
});

test("a sequencer has one object for each name", async (t) => {
  const client = open(t, ["http://127.0.0.1:1"]);
  assert.equal(client.sequencer("a"), client.sequencer("a"));
  assert.notEqual(client.sequencer("a"), client.sequencer("b"));
  assert.throws(() => client.sequencer(""), /"" is not the name of a sequencer/);
});

test("a crowd is answered by few requests, one at a time", async (t) => {
  let busy = 0;
  let most = 0;
  const server = await serve(t, (request, response, count) => {
    most = Math.max(most, ++busy);
    setImmediate(() => {
      busy--;
      ids(request, response, count);
    });
  });
  const s = open(t, [server.url]).sequencer("orders");
  const all = await Promise.all(Array.from({ length: 5000 }, () => s.next()));
  assert.deepEqual(all, [...new Set(all)].sort((a, b) => Number(a - b)));
  assert.equal(most, 1);
  assert.ok(server.counts.length <= 10, String(server.counts));
});

test("IDs are fetched ahead, and more of them if they are used up soon", async (t) => {
  const server = await serve(t, ids);
  const s = open(t, [server.url], { batch: 10, maxBatch: 40 }).sequencer("orders");
  for (let i = 0; i < 5; i++) await s.next();
  assert.deepEqual(server.counts, [10]);
  await s.next();
  await until(() => server.counts.length === 2); // before they are used up
  for (let i = 0; i < 400; i++) await s.next();
  assert.equal(server.counts.at(-1), 40);
});

test("IDs that are too old are not handed out", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1e12 });
  const server = await serve(t, ids);
  const s = open(t, [server.url], { validity: 60_000, batch: 8 }).sequencer("orders");
  const first = await s.next();
  t.mock.timers.tick(59_999);
  await new Promise(setImmediate);
  assert.equal(await s.next(), first + 1n);
  t.mock.timers.tick(1); // such as a suspend: only the wall clock goes on
  await new Promise(setImmediate);
  assert.equal(s.tryNext(), undefined);
  assert.equal(await s.next(), first + 8n);
  assert.deepEqual(server.counts, [8, 4], "a batch that expires mostly unused is followed by a smaller one");
});

test("IDs of a late answer are old", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1e12 });
  const server = await serve(t, (request, response, count) => {
    t.mock.timers.tick(60_000);
    ids(request, response, count);
  });
  const s = open(t, [server.url], { validity: 60_000 }).sequencer("orders");
  for (let i = 1; i <= 3; i++) {
    await s.next(); // it waited for the answer
    assert.equal(s.tryNext(), undefined);
    await until(() => server.counts.length >= i);
  }
});

test("a caller that gives up does not cancel the request of the others", async (t) => {
  /** @type {(() => void) | undefined} */
  let go;
  const server = await serve(t, (request, response, count) => (go = () => ids(request, response, count)));
  const s = open(t, [server.url]).sequencer("orders");
  const abort = new AbortController();
  const first = s.next({ signal: abort.signal });
  const second = s.next();
  await until(() => go !== undefined);
  abort.abort(new Error("enough"));
  assert.match((await reason(first)).message, /enough/);
  go?.();
  assert.equal(typeof (await second), "bigint");
  assert.deepEqual(server.counts, [100]);
  assert.equal((await reason(s.take(3, { signal: AbortSignal.abort() }))).name, "AbortError");
});

test("close fails calls that wait, and later ones", async (t) => {
  const server = await serve(t, hang);
  const client = open(t, [server.url]);
  const s = client.sequencer("orders");
  const waits = [reason(s.next()), reason(s.take(2)), reason(s[Symbol.asyncIterator]().next())];
  await until(() => server.counts.length === 2);
  await client.close();
  await client.close();
  for (const e of await Promise.all(waits)) assert.ok(e instanceof ClosedError, String(e));
  assert.ok((await reason(s.next())) instanceof ClosedError);
  assert.ok((await reason(s.take(1))) instanceof ClosedError);
  assert.throws(() => s.tryNext(), ClosedError);
  assert.ok((await reason(client.sequencer("other").next())) instanceof ClosedError);
});

test("a closed sequencer is replaced", async (t) => {
  const server = await serve(t, ids);
  const client = open(t, [server.url]);
  await client.sequencer("orders").close();
  assert.equal(typeof (await client.sequencer("orders").next()), "bigint");
});

test("bad arguments are named", async (t) => {
  for (const [servers, options, want] of /** @type {[string[], any, RegExp][]} */ ([
    [[], {}, /^servers is empty: name at least one/],
    [/** @type {any} */ ("http://a"), {}, /^servers must be an array/],
    [/** @type {any} */ ([5]), {}, /server 5: write http/],
    [["http://a"], null, /^the options must be an object/],
    [["http://a"], "firn_secret", /^the options must be an object, such as \{ patience: 3000 \}$/],
    [["http://a"], { patience: "10" }, /patience is "10": it must be a number/],
    [["https://a"], { tls: "pem" }, /^tls must be an object or a function$/],
    [["http://a"], { log: 5 }, /log is 5: it must be a function/],
    [["http://a"], { batch: 5n }, /batch is 5n: it must be a number/],
    [/** @type {any} */ ([Object.create(null)]), {}, /server an object: write http/],
    [["127.0.0.1:3476"], {}, /server "127.0.0.1:3476": write http:\/\/HOST:PORT/],
    [["firn://a"], {}, /server "firn:\/\/a": write http/],
    [["http://u:secret@a"], {}, /^a server has a user name or a password: use the option token$/],
    [["http://a/?x=1"], {}, /has a query/],
    [["http://a", "http://a/"], {}, /server "http:\/\/a\/" occurs twice/],
    [["http://a"], { timeout: 0 }, /timeout is 0: it must be a number from 1 to/],
    [["http://a"], { batch: 1.5 }, /batch is 1.5/],
    [["http://a"], { batch: 20, maxBatch: 10 }, /batch is 20: it cannot exceed maxBatch, which is 10/],
    [["http://a"], { maxBatch: 100_001 }, /maxBatch is 100001: it must be a number from 1 to 100000/],
    [["http://a"], { tokens: "x" }, /the option "tokens" does not exist: write token, /],
    [["http://a"], { token: "a b" }, /the token has a character that is not allowed/],
    [["http://a"], { token: 5 }, /token must be a string or a function/],
    [["http://a"], { tls: {} }, /tls is set, but no server is https/],
    [["http://a"], { patience: -1, validity: -1 }, /patience is -1.*; validity is -1/],
  ]))
    assert.throws(() => new Client(servers, options), { name: "TypeError", message: want });
  const s = open(t, ["http://127.0.0.1:1"]).sequencer("orders");
  const traces = open(t, ["http://127.0.0.1:1"]).sequencer128("traces");
  for (const any of /** @type {any[]} */ ([s, traces, new FakeClient().sequencer("orders"), new FakeClient().sequencer128("traces")])) {
    for (const n of [0, -1, 1.5, 2 ** 32, NaN, "3", 3n, undefined]) assert.match((await reason(any.take(n))).message, /^n is .*: it must be an integer from 1 to 4294967295$/);
    for (const options of [5, "x", null, AbortSignal.abort(), { sginal: 1 }])
      for (const call of [any.next(options), any.take(1, options)]) assert.match((await reason(call)).message, /^the options of a call are .*: write \{ signal \}$/);
    for (const signal of [5, "x", null, {}, { aborted: false }])
      for (const call of [any.next({ signal }), any.take(1, { signal })]) assert.match((await reason(call)).message, /^signal is .*: it must be an AbortSignal$/);
  }
  for (const any of /** @type {any[]} */ ([s, new FakeClient().sequencer("orders")])) assert.match((await reason(any.array(2 ** 32))).message, /^n is 4294967296: /);
  for (const any of /** @type {any[]} */ ([traces, new FakeClient().sequencer128("traces")])) assert.match((await reason(any.array(1))).message, /array has IDs of 64 bits: use take/);
});

test("no error of an argument shows a token or a key", async (t) => {
  const [key, url] = ["5ec2e7".repeat(10) + "5ec2", "http://127.0.0.1:1"];
  const s = /** @type {any} */ (open(t, [url]).sequencer("orders"));
  const held = (/** @type {any} */ secret) => [{ token: secret }, [[secret]], Object.assign(() => 0, { secret }), Object.assign(new Error(), { secret }), new Map([[secret, secret]])];
  for (const secret of /** @type {any[]} */ ([...held(key), ...held(Buffer.from(key)), Buffer.from(key), new TextEncoder().encode(key)]))
    for (const call of [
      () => new Client(secret),
      () => new Client([secret]),
      ...["token", "tls", "log", "timeout", "batch"].map((name) => () => void new Client([url], { [name]: secret }).close()),
      () => new Veiled(secret, "orders"),
      () => new Veiled(key, secret),
      () => new Veiled(key, "orders", secret),
      () => new Typed(secret),
      () => new Typed("order").parse(secret),
      () => format(secret, "dec"),
      () => format(1n, secret),
      () => open(t, [url]).sequencer(secret),
      () => s.take(secret),
      () => s.next(secret),
      () => s.next({ signal: secret }),
    ])
      await noSecret(call);
  for (const call of [
    () => new Client(/** @type {any} */ (`http://u:${key}@a`)),
    ...[`u:${key}@a`, `http:u:${key}@a`, `http://u:${key}@a`, `http://a/?token=${key}`].map((url) => () => new Client([url])),
    () => new Veiled("orders", key),
    () => new Veiled(key, "orders", /** @type {any} */ (key)),
  ])
    await noSecret(call);

  async function noSecret(/** @type {() => any} */ call) {
    const message = await Promise.resolve().then(call).then(() => "", (e) => `${e.message}`);
    assert.doesNotMatch(message, /5ec2|35 65 63 32|53, ?101/, String(call));
  }
});

test("a server that answers again is used again", async (t) => {
  const a = await serve(t, problem(503, "draining"));
  const b = await serve(t, ids);
  /** @type {string[]} */
  const events = [];
  const client = open(t, [a.url, b.url], { log: (e) => events.push(e.message) });
  const s = client.sequencer("orders");
  while (a.counts.length === 0) await s.take(1);
  a.handler = ids;
  while (client.servers()[0]?.error) {
    await s.take(1);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.deepEqual(events, ["server failed", "server answers again"]);
  assert.equal(a.counts.at(-1), 1, "by a probe");
});

test("a slow server is not asked while another one works, but used alone", async (t) => {
  const slow = await serve(t, (request, response, count) => void setTimeout(() => ids(request, response, count), 600));
  assert.equal((await open(t, [slow.url]).sequencer("orders").take(3)).length, 3);
});

test("the error lists what each server said", async (t) => {
  const [a, b] = [await serve(t, problem(503, "no-grant")), await serve(t, hang)];
  const dead = await nobody();
  const s = open(t, [a.url, b.url, dead], { patience: 1500, timeout: 400 }).sequencer("orders");
  const e = await reason(s.next());
  assert.ok(e instanceof UnavailableError && e instanceof FirnError);
  assert.equal(e.errors.length, 3);
  assert.match(e.message, new RegExp(`^no server gives IDs of "orders": "orders" at ${a.url}: 503 no-grant: the detail of no-grant; "orders" at ${b.url}: no answer after \\d+ ms; "orders" at ${dead}: .*ECONNREFUSED.*: is the server running`));
});

test("patience bounds a call, also if the server asks for a longer pause", async (t) => {
  const server = await serve(t, problem(503, "not-yet", { "Retry-After": "3600" }));
  const e = await reason(open(t, [server.url], { patience: 2000 }).sequencer("orders").next());
  assert.equal(e.errors[0].retryAfter, 3_600_000);
  assert.equal(server.counts.length, 1, "it is not asked again before");
});

test("a wrong request fails at once, if every server agrees", async (t) => {
  const [a, b] = [await serve(t, problem(404, "no-sequencer")), await serve(t, problem(404, "no-sequencer"))];
  const client = open(t, [a.url, b.url, await nobody()], { patience: 3_600_000, timeout: 3_600_000 });
  const e = await reason(client.sequencer("ordres").next());
  assert.ok(e instanceof ServerError);
  assert.deepEqual([e.status, e.kind, e.sequencer, a.counts.length, b.counts.length], [404, "no-sequencer", "ordres", 1, 1]);
  assert.match(e.message, /: 404 no-sequencer: the detail of no-sequencer: check the name, or create it: firn sequencer create$/);
  b.handler = ids;
  assert.equal(typeof (await client.sequencer("ordres").next()), "bigint");
});

test("a refused token is reported, and the next request has the next token", async (t) => {
  const server = await serve(t, problem(401, "unauthorized"));
  let token = "firn_old\n";
  const s = open(t, [server.url], { token: async () => token }).sequencer("orders");
  assert.match((await reason(s.next())).message, /401 unauthorized: .*: check the option token/);
  assert.equal(server.headers[0]?.authorization, "Bearer firn_old");
  server.handler = ids;
  token = "firn_new";
  await s.next();
  assert.equal(server.headers[1]?.authorization, "Bearer firn_new");
  const failing = open(t, [server.url], {
    token: () => {
      throw new Error("no such file");
    },
  });
  assert.match((await reason(failing.sequencer("orders").next())).message, /get the option token or tls: no such file/);
});

test("a problem of an unknown kind is reported as it is", async (t) => {
  const server = await serve(t, problem(409, "constructor"));
  assert.match((await reason(open(t, [server.url]).sequencer("orders").next())).message, /: 409 constructor: the detail of constructor$/);
});

test("answers that are not the requested IDs are refused", async (t) => {
  const server = await serve(t, ids);
  const same = pack(3);
  const twice = Buffer.concat([same.subarray(0, 16), same.subarray(0, 8)]);
  const s = open(t, [server.url]).sequencer("orders");
  for (const [body, headers, want] of /** @type {[Buffer, object, RegExp][]} */ ([
    [pack(2), {}, /it has 16 bytes, not the 24 of 3 IDs of 64 bits/],
    [pack(4), {}, /it has 32 bytes, not the 24/],
    [pack(3, 16), {}, /the sequencer has IDs of 128 bits: use the client's method sequencer128/],
    [Buffer.alloc(24), {}, /the ID 0, which is never made/],
    [twice, {}, /it contains an ID twice/],
    [Buffer.alloc(0), {}, /it has 0 bytes/],
    [pack(3), { "Content-Type": "text/html" }, /it is "text\/html", not application\/octet-stream: is this a Firn server/],
    [pack(3), { "Firn-Nonce": "another" }, /the answer to another request/],
  ])) {
    server.handler = (request, response) => answer(request, response, body, headers);
    const e = await reason(s.take(3));
    assert.ok(e.errors[0] instanceof AnswerError);
    assert.match(e.message, want);
  }
  server.handler = (request, response) => answer(request, response, same);
  await s.take(3);
  assert.match((await reason(s.take(3))).message, /the same ID as the previous one/);
  // Not in order, but each once.
  server.handler = (request, response) => answer(request, response, Buffer.concat([pack(3)].flatMap((b) => [b.subarray(16), b.subarray(0, 16)])));
  assert.equal((await s.take(3)).length, 3);
});

test("an answer is refused if and only if it has the ID 0 or an ID twice", () => {
  let seed = 1;
  const random = (/** @type {number} */ n) => (seed = (seed * 48271) % 0x7fffffff) % n;
  let refused = 0;
  for (let round = 0; round < 20_000; round++) {
    const size = round % 2 === 0 ? 8 : 16;
    const count = 1 + random(4);
    const bytes = Buffer.alloc(count * size);
    // Two bits of each, in any of the words.
    for (let at = 0; at < count; at++) for (let bit = 0; bit < 2; bit++) bytes[size * at + random(size)] = random(2) * (1 + random(255));
    const all = Array.from({ length: count }, (_, i) => bytes.toString("hex", size * i, size * (i + 1)));
    const bad = new Set(all).size < count || all.some((id) => /^0+$/.test(id));
    if (bad) refused++;
    assert.equal(faultOf(bytes, size, count) !== "", bad, String(all));
  }
  assert.ok(refused > 1000 && refused < 19_000, String(refused));
});

test("an answer that is cut off gives no ID, wherever it is cut", async (t) => {
  let cut = 0;
  let whole = "";
  const url = await serveBytes(t, (request) => {
    const nonce = /firn-nonce: (\S+)/i.exec(request)?.[1] ?? "";
    whole = `HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nFirn-Nonce: ${nonce}\r\nContent-Length: 24\r\n\r\n${pack(3).toString("latin1")}`;
    return Buffer.from(whole.slice(0, cut), "latin1");
  });
  // Each client makes one attempt: the first pause is longer than its patience.
  const attempt = async (patience = 120) => {
    const client = new Client([url], { patience });
    try {
      return await client.sequencer("orders").take(3);
    } finally {
      await client.close();
    }
  };
  for (; whole === "" || cut < whole.length; cut++) {
    const e = await reason(attempt());
    assert.ok(e instanceof UnavailableError, `cut at ${cut}: ${e}`);
  }
  assert.equal((await attempt(10_000)).length, 3);
});

test("something other than a Firn server is named", async (t) => {
  const cases = /** @type {[string, RegExp][]} */ ([
    ["SSH-2.0-OpenSSH_9.6\r\n", /the answer is not HTTP: is this a Firn server/],
    ["", /socket hang up/],
    ["HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p>x", /is this a Firn server/],
    ["HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope", /404 not found: the answer begins with "nope": is this a Firn server/],
    ["HTTP/1.1 302 Found\r\nLocation: http://b/\r\nContent-Length: 0\r\n\r\n", /302 found: a redirect to "http:\/\/b\/": redirects are not followed/],
    ["HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n", /write https:\/\/ in the option servers/],
  ]).map(async ([bytes, want]) => {
    const url = await serveBytes(t, () => bytes);
    assert.match((await reason(open(t, [url], { patience: 2000 }).sequencer("orders").next())).message, want);
    // Beside a server that works, it does no harm.
    const good = await serve(t, ids);
    const client = open(t, [url, good.url]);
    for (let i = 0; i < 10; i++) await client.sequencer(`s${i}`).next();
  });
  await Promise.all(cases);
  const server = await serve(t, ids);
  const tls = server.url.replace("http:", "https:");
  assert.match((await reason(open(t, [tls], { patience: 2000 }).sequencer("orders").next())).message, /the server does not speak TLS: write http:\/\//);
  const unknown = "http://firn.invalid:3476";
  assert.match((await reason(open(t, [unknown], { patience: 2000 }).sequencer("orders").next())).message, /(ENOTFOUND|EAI_AGAIN).*: check the host name in the option servers|no answer/);
});

test("a connection that the server has closed is replaced", async (t) => {
  const server = await serve(t, ids);
  const client = open(t, [server.url]);
  const s = client.sequencer("orders");
  await s.take(1);
  for (let i = 0; i < 20; i++) {
    for (const socket of server.sockets) socket.resetAndDestroy();
    server.sockets.clear();
    await s.take(1);
  }
  assert.equal(client.servers()[0]?.error, undefined);
});

test("a call that arrives while a fetch fails is not answered by its error", async (t) => {
  const server = await serve(t, problem(401, "unauthorized"));
  /** @type {Promise<bigint> | undefined} */
  let second;
  const s = open(t, [server.url]).sequencer("orders");
  server.handler = (...args) => {
    second = s.next();
    server.handler = ids;
    problem(401, "unauthorized")(...args);
  };
  await reason(s.next());
  assert.equal(typeof (await second), "bigint");
});

test("a failed fetch ahead does not disturb calls", async (t) => {
  const server = await serve(t, ids);
  const s = open(t, [server.url], { batch: 8, maxBatch: 8 }).sequencer("orders");
  await s.next();
  server.handler = problem(401, "unauthorized");
  for (let i = 0; i < 5; i++) await s.next();
  await until(() => server.counts.length === 2);
  await new Promise((resolve) => setTimeout(resolve, 20));
  server.handler = ids;
  for (let i = 0; i < 20; i++) await s.next();
});
