// Compares a warm sequencer with flake-idgen, which makes IDs in the process, and with a counter.
//
//     node bench/bench.mjs http://127.0.0.1:3476
//
// Each line is the fastest of 15 rounds, which take turns: others were disturbed. A round draws
// from one fetched batch; the fetch itself is not measured. flake-idgen's next() without a callback throws when the 4096 IDs
// of a millisecond are used up, so its line has the time of a busy wait, and another one only
// calls that return an ID, 4000 in a fresh millisecond.
//
// The last lines are processor time with fetching, for a million IDs: the median of 5 rounds.
import { setImmediate as turn } from "node:timers/promises";
// @ts-expect-error it has no types
import FlakeId from "flake-idgen";
import { uuidv7 } from "uuidv7";
import { Client } from "@firnid/client";

const server = process.argv[2];
if (!server) throw new Error("write the URL of a server: node bench/bench.mjs http://127.0.0.1:3476");
const rounds = 15;
const most = 100_000;
const draws = 40_000;
const client = new Client([server], { batch: most, maxBatch: most });
const orders = client.sequencer("bench");
const flake = new FlakeId();
let counter = 1n << 56n;
/** @type {unknown} */
export let last;

/** Waits until the sequencer holds a full batch. The processor must not idle before a measurement. */
async function warm() {
  while (orders.tryNext() !== undefined);
  await orders.next();
  await turn();
}

/** @type {Record<string, () => Promise<number>>} Each returns nanoseconds per ID. */
const runs = {
  "bigint counter++": async () => measure(draws, () => (last = counter++)),
  "flake-idgen next()": async () =>
    measure(draws, () => {
      for (;;) {
        try {
          last = flake.next();
          return;
        } catch {
          // the millisecond is full
        }
      }
    }),
  "flake-idgen next(), fresh millisecond": async () => {
    const begin = Date.now();
    while (Date.now() === begin);
    return measure(3000, () => (last = flake.next()));
  },
  "tryNext()": async () => {
    await warm();
    return measure(draws, () => {
      last = orders.tryNext();
      if (last === undefined) throw new Error("the batch was not warm");
    });
  },
  "await Promise.resolve(1n)": async () => {
    const begin = process.hrtime.bigint();
    for (let i = 0; i < draws; i++) last = await Promise.resolve(1n);
    return Number(process.hrtime.bigint() - begin) / draws;
  },
  "await next()": async () => {
    await warm();
    const begin = process.hrtime.bigint();
    for (let i = 0; i < draws; i++) last = await orders.next();
    return Number(process.hrtime.bigint() - begin) / draws;
  },
  "for await": async () => {
    await warm();
    const begin = process.hrtime.bigint();
    let i = 0;
    for await (const id of orders) {
      last = id;
      if (++i === draws) break;
    }
    return Number(process.hrtime.bigint() - begin) / draws;
  },
};

/**
 * @param {number} n
 * @param {() => unknown} f
 */
function measure(n, f) {
  const begin = process.hrtime.bigint();
  for (let i = 0; i < n; i++) f();
  return Number(process.hrtime.bigint() - begin) / n;
}

/** @type {Record<string, number[]>} */
const times = Object.fromEntries(Object.keys(runs).map((name) => [name, []]));
for (let round = -5; round < rounds; round++) {
  for (const [name, run] of Object.entries(runs)) {
    const ns = await run();
    if (round >= 0) times[name]?.push(ns);
  }
}
const fastest = (/** @type {string} */ name) => Math.min(...(times[name] ?? []));
const base = fastest("flake-idgen next()");
console.log(`node ${process.version}, ns per ID, and how many times faster than flake-idgen next()`);
for (const name of Object.keys(runs)) {
  const ns = fastest(name);
  console.log(`${name.padEnd(40)} ${ns.toFixed(1).padStart(8)} ${(base / ns).toFixed(1).padStart(6)}`);
}

// With the usual batches, and without a cap on IDs in a millisecond.
const body = JSON.stringify({ layout: "hazelcast", max_ahead: "2000h" });
const created = await fetch(`${server}/v1/sequencers/sustained`, { method: "PUT", body });
if (!created.ok) throw new Error(`create the sequencer sustained: status ${created.status}`);
const usual = new Client([server]);
const sustained = usual.sequencer("sustained");
const million = 1_000_000;
/** @type {Record<string, () => Promise<void>>} */
const loops = {
  "uuidv7()": async () => {
    for (let i = 0; i < million; i++) last = uuidv7();
  },
  "await next()": async () => {
    for (let i = 0; i < million; i++) last = await sustained.next();
  },
  "take(1e6)": async () => void (last = await sustained.take(million)),
  "array(1e6)": async () => void (last = await sustained.array(million)),
};
/** @type {Record<string, number[]>} */
const spent = Object.fromEntries(Object.keys(loops).map((name) => [name, []]));
for (let round = -1; round < 5; round++) {
  for (const [name, loop] of Object.entries(loops)) {
    const begin = process.cpuUsage();
    await loop();
    const { user, system } = process.cpuUsage(begin);
    if (round >= 0) spent[name]?.push(((user + system) * 1000) / million);
  }
}
const median = (/** @type {string} */ name) => spent[name]?.sort((a, b) => a - b)[2] ?? 0;
console.log("ns of processor time per ID, and in relation to uuidv7()");
for (const name of Object.keys(loops)) console.log(`${name.padEnd(40)} ${median(name).toFixed(1).padStart(8)} ${(median(name) / median("uuidv7()")).toFixed(2).padStart(6)}`);
await usual.close();
await client.close();
