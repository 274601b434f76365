import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import * as v8 from "node:v8";
import { Client, ClosedError, ServerError, UnavailableError } from "@firnid/client";
import { Call } from "../dist/call.js";
import { Exchange } from "../dist/exchange.js";
import { hang, ids, problem, serve, until } from "./servers.mjs";

/** @typedef {import("@firnid/client").Sequencer<bigint>} Sequencer */
/** @typedef {import("@firnid/client").ClientOptions} ClientOptions */
/** @typedef {{ client: Client, s: Sequencer, abort: AbortController }} Scene */
/** @typedef {{ act: (scene: Scene) => unknown, want: (result: any) => boolean }} Act */
/** @typedef {{ handlers: import("./servers.mjs").Handler[], options?: ClientOptions, failures?: number } & (Act | { act?: undefined, want: Act["want"] })} End */

const long = 3_600_000;
const busy = problem(503, "busy", { "Retry-After": "60" });

/** @type {Record<string, (s: Sequencer, signal: AbortSignal) => Promise<unknown>>} */
const calls = {
  next: (s, signal) => s.next({ signal }),
  take: (s, signal) => s.take(3, { signal }),
  iterator: (s) => s[Symbol.asyncIterator]().next(),
};

/** What ends a call that waits. @type {Record<string, Act>} */
const acts = {
  "it is aborted": { act: ({ abort }) => abort.abort(new Error("enough")), want: (r) => r.message === "enough" },
  "the sequencer is closed": { act: ({ s }) => s.close(), want: (r) => r instanceof ClosedError },
  "the client is closed": { act: ({ client }) => client.close(), want: (r) => r instanceof ClosedError },
};

/** How a call can end; after so many failures of servers, act ends it. @type {Record<string, End>} */
const ends = {
  "it returns": { handlers: [ids], want: (r) => !(r instanceof Error) },
  "a server refuses": { handlers: [problem(404, "no-sequencer")], want: (r) => r instanceof ServerError },
  "the token fails": { handlers: [ids], options: { token: () => Promise.reject(new Error("no token")) }, want: (r) => /no token/.test(r) },
  "patience passes": { handlers: [hang], options: { patience: 50 }, want: (r) => r instanceof UnavailableError },
  "a request times out": { handlers: [hang], options: { timeout: 50, patience: 300 }, want: (r) => r instanceof UnavailableError },
};
for (const [how, act] of Object.entries(acts)) {
  ends[`${how} during a request`] = { handlers: [hang], ...act };
  ends[`${how} during a pause`] = { handlers: [busy], failures: 1, ...act };
  // The slow one has begun a wait for the pause of the other, and its end another one.
  ends[`${how} after a slow request`] = { handlers: [hang, busy], options: { timeout: 300 }, failures: 2, ...act };
}

/** Counts the timers that the package has begun, and that have neither ended nor been cleared. */
function countTimers(/** @type {import("node:test").TestContext} */ t) {
  const begun = new Set();
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  t.after(() => Object.assign(globalThis, { setTimeout: set, clearTimeout: clear }));
  const setTimeout = (/** @type {() => void} */ f, /** @type {number} */ ms) => {
    const timer = set(() => {
      begun.delete(timer);
      f();
    }, ms);
    begun.add(timer);
    return timer;
  };
  const clearTimeout = (/** @type {NodeJS.Timeout} */ timer) => {
    begun.delete(timer);
    clear(timer);
  };
  Object.assign(globalThis, { setTimeout, clearTimeout });
  return begun;
}

const turn = () => new Promise(setImmediate);
const holds = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

for (const [name, call] of Object.entries(calls))
  for (const [how, end] of Object.entries(ends)) {
    const aborts = how.startsWith("it is aborted");
    if (name === "iterator" && aborts) continue; // it has no signal
    test(`nothing of ${name} is left after ${how}, the first time and again`, { timeout: 60_000 }, async (t) => {
      const all = await Promise.all(end.handlers.map((handler) => serve(t, handler)));
      const requests = () => all.reduce((n, server) => n + server.counts.length, 0);
      const sockets = () => all.flatMap((server) => [...server.sockets]);
      let failures = 0;
      const before = holds();
      const timers = countTimers(t);
      for (let again = 0; again < 2; again++) {
        const options = { timeout: long, patience: long, log: () => void failures++, ...end.options };
        const client = new Client(
          all.map((server) => server.url),
          options,
        );
        t.after(() => client.close());
        const s = client.sequencer("orders");
        // Again with the same sequencer, unless it is closed.
        for (let round = 0; round < (end.act && !aborts ? 1 : 3); round++) {
          const abort = new AbortController();
          const begun = requests();
          const failed = failures;
          // Two that wait for the same.
          const results = [call(s, abort.signal), call(s, abort.signal)].map((result) => result.catch((/** @type {unknown} */ e) => e));
          if (end.act) {
            // After the first round, a request or a pause may be in progress already.
            await until(() => round > 0 || (requests() > begun && failures >= failed + (end.failures ?? 0)));
            await turn();
            assert.equal(getEventListeners(abort.signal, "abort").length, name === "iterator" ? 0 : 2);
            assert.equal(holds(), before + 1, "nothing keeps the program alive");
            for (let twice = 0; twice < 2; twice++) await end.act({ client, s, abort });
          }
          for (const result of await Promise.all(results)) assert.ok(end.want(result), String(result));
          await turn();
          assert.deepEqual(getEventListeners(abort.signal, "abort"), [], "listeners");
          assert.equal(holds(), before, "the call keeps the program alive");
          if (name === "take" || !aborts) assert.equal(timers.size, 0, "timers"); // others may wait for the request of a next
        }
        if (how === "it returns") for (let more = 0; more < 9; more++) await call(s, new AbortController().signal);
        await s.close();
        await s.close();
        await until(() => how === "it returns" || sockets().every((socket) => socket.destroyed || !all.some((x) => x.handler === hang && x.sockets.has(socket))));
        await client.close();
        await client.close();
        await turn();
        assert.equal(timers.size, 0, "timers after close");
        await until(() => sockets().every((socket) => socket.destroyed));
        await assert.rejects(call(s, new AbortController().signal), ClosedError);
      }
    });
  }

test("a sequencer keeps nothing of calls that have ended", { skip: !v8.queryObjects && "node:v8 has no queryObjects" }, async (t) => {
  const server = await serve(t, ids);
  const client = new Client([server.url], { timeout: long, patience: long });
  t.after(() => client.close());
  const s = client.sequencer("orders");
  const count = () => [Call, Exchange].map((kind) => v8.queryObjects(kind, { format: "count" })); // collects garbage
  const [calls, exchanges] = count();
  for (let n = 0; n < 100; n++) {
    server.handler = [ids, hang, problem(404, "no-sequencer")][n % 3] ?? hang;
    const abort = new AbortController();
    const begun = server.counts.length;
    const result = s.take(1, { signal: abort.signal }).catch(() => undefined);
    await until(() => server.counts.length > begun);
    if (server.handler === hang) abort.abort();
    await result;
  }
  assert.deepEqual(
    count().map((n, i) => n - ([calls, exchanges][i] ?? 0) < 20),
    [true, true],
    String(count()),
  );
});

test("a probe ends when its sequencer is closed", { timeout: 60_000 }, async (t) => {
  const [hung, good] = [await serve(t, hang), await serve(t, ids)];
  const client = new Client([hung.url, good.url], { timeout: long, patience: long });
  t.after(() => client.close());
  const s = client.sequencer("orders");
  const timers = countTimers(t);
  while (!hung.counts.includes(1)) {
    await s.take(2);
    await turn();
  }
  await s.close();
  await until(() => [...hung.sockets].every((socket) => socket.destroyed));
  assert.equal(timers.size, 0);
});

test("a signal that has been aborted begins nothing", async (t) => {
  const server = await serve(t, hang);
  const client = new Client([server.url]);
  t.after(() => client.close());
  const before = holds();
  const timers = countTimers(t);
  const signal = AbortSignal.abort(new Error("before"));
  for (const name of ["next", "take"]) await assert.rejects(calls[name]?.(client.sequencer("orders"), signal) ?? Promise.resolve(), /before/);
  assert.deepEqual([timers.size, holds(), getEventListeners(signal, "abort").length, server.connections], [0, before, 0, 0]);
});

test("a startup snapshot cannot hold a Client", (t) => {
  t.mock.method(v8.startupSnapshot, "isBuildingSnapshot", () => true);
  assert.throws(() => new Client(["http://127.0.0.1:1"]), /would hand out the same IDs/);
});
