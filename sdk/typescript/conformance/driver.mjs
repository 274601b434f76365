// The driver of the conformance suite: it reads a command from each line of its input, and answers
// it in a line of its output.
//
//     driver.mjs --servers URL,URL --sequencer NAME [--token-file FILE] [--ca FILE] [--wide]
//         [--patient] [--timeout S] [--patience S]
//
//     next N         ok ID…        N calls of next, one after the other
//     take N         ok ID…
//     burst N T FILE ok MS         T tasks draw N IDs each into FILE, packed; the longest call
//     fork N FILE    ok            this process, a worker thread and a child draw N each into FILE
//     stats          ok {json}     the state of the servers
//     close          ok            and ends the program
//
// A failure is: error CLASS MESSAGE
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { Client } from "@firnid/client";

/** @type {string[]} */
const args = isMainThread ? process.argv.slice(2) : workerData;
const { values, positionals } = parseArgs({
  args,
  allowPositionals: true,
  options: {
    servers: { type: "string" },
    sequencer: { type: "string" },
    "token-file": { type: "string" },
    ca: { type: "string" },
    wide: { type: "boolean" }, // IDs of 128 bits
    patient: { type: "boolean" },
    timeout: { type: "string" }, // in seconds
    patience: { type: "string" },
  },
});
const { servers, sequencer, ca, wide, patient, timeout, patience, "token-file": tokenFile } = values;
if (servers === undefined || sequencer === undefined) throw new Error("write --servers and --sequencer");
const client = new Client(servers.split(","), {
  ...(tokenFile && { token: () => readFileSync(tokenFile, "utf8") }),
  ...(patient && { timeout: 600_000, patience: 600_000 }),
  ...(timeout && { timeout: 1000 * Number(timeout) }),
  ...(patience && { patience: 1000 * Number(patience) }),
  ...(ca && { tls: () => ({ ca: readFileSync(ca) }) }),
});
const ids = /** @type {import("@firnid/client").Sequencer<bigint | string>} */ (wide ? client.sequencer128(sequencer) : client.sequencer(sequencer));

async function draw(/** @type {number} */ n) {
  const all = [];
  while (all.length < n) all.push(await ids.next());
  return all;
}

/** Packs IDs big-endian. */
function pack(/** @type {(bigint | string)[]} */ all) {
  const bytes = Buffer.alloc(all.length * (wide ? 16 : 8));
  all.forEach((id, i) => {
    if (typeof id === "bigint") bytes.writeBigUInt64BE(id, 8 * i);
    else bytes.write(id.replaceAll("-", ""), 16 * i, "hex");
  });
  return bytes;
}

/** @type {Record<string, (...words: string[]) => Promise<string>>} */
const commands = {
  next: async (n) => (await draw(Number(n))).join(" "),
  take: async (n) => (await ids.take(Number(n))).join(" "),
  burst: async (n, tasks, file) => {
    let longest = 0;
    const draws = Array.from({ length: Number(tasks) }, async () => {
      const all = [];
      for (let i = 0; i < Number(n); i++) {
        const begin = performance.now();
        all.push(await ids.next());
        longest = Math.max(longest, performance.now() - begin);
      }
      return pack(all);
    });
    writeFileSync(file ?? "", Buffer.concat(await Promise.all(draws)));
    return longest.toFixed(1);
  },
  fork: async (n, file) => {
    await draw(10);
    const url = new URL(import.meta.url);
    const words = [...args, "draw", n ?? ""];
    const child = fork(url, words, { serialization: "advanced" });
    const worker = new Worker(url, { workerData: words });
    const [own, [fromChild], [fromWorker]] = await Promise.all([draw(Number(n)), once(child, "message"), once(worker, "message")]);
    writeFileSync(file ?? "", pack([...own, ...fromChild, ...fromWorker]));
    return "";
  },
  stats: async () => JSON.stringify(client.servers().map((s) => ({ ...s, error: s.error?.message }))),
  close: async () => {
    await client.close();
    return "";
  },
};

if (positionals[0] === "draw") {
  const all = await draw(Number(positionals[1]));
  if (parentPort) parentPort.postMessage(all);
  else process.send?.(all, () => process.disconnect());
} else {
  for await (const line of createInterface({ input: process.stdin })) {
    const [name = "", ...words] = line.trim().split(/\s+/);
    try {
      const command = commands[name];
      if (!command) throw new Error(`${name} is not a command`);
      console.log(`ok ${await command(...words)}`.trimEnd());
    } catch (e) {
      const error = /** @type {Error} */ (e);
      console.log(`error ${error.name} ${error.message.replace(/\s+/g, " ")}`);
    }
    if (name === "close") break;
  }
  process.stdin.destroy();
}
