// The programs of process.test.mjs: node program.mjs KIND SERVER…
import cluster from "node:cluster";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { Client } from "@firnid/client";

const [kind, ...servers] = isMainThread ? process.argv.slice(2) : workerData;
const client = new Client(servers);
const orders = client.sequencer("orders");

async function draw() {
  const all = [];
  for (let i = 0; i < 1000; i++) all.push(String(await orders.next()));
  return all;
}
const print = (/** @type {string[]} */ all) => process.stdout.write(all.join("\n") + "\n");

if (kind === "once") {
  print([String(await orders.next())]);
} else if (kind === "hung") {
  while (!client.servers()[0]?.error) await orders.take(1);
  for (let i = 0; i < 80; i++) await orders.next(); // a fetch ahead is in progress
  print(["done"]);
} else if (kind === "threads" && isMainThread) {
  await orders.next();
  for (let i = 0; i < 2; i++) new Worker(new URL(import.meta.url), { workerData: [kind, ...servers] }).on("message", print);
  print(await draw());
} else if (kind === "threads") {
  parentPort?.postMessage(await draw());
} else if (kind === "cluster") {
  if (cluster.isPrimary) {
    await orders.next();
    for (let i = 0; i < 2; i++) cluster.fork();
  }
  print(await draw());
  if (cluster.isWorker) process.disconnect();
} else if (kind === "clone") {
  await orders.next();
  try {
    const copy = structuredClone(orders);
    print([typeof copy.tryNext === "function" ? "a copy" : "no IDs in the copy"]);
  } catch {
    print(["no IDs in the copy"]);
  }
}
