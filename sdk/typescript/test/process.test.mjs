import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { hang, ids, serve } from "./servers.mjs";

const program = new URL("program.mjs", import.meta.url).pathname;

/** Runs program.mjs, and returns what it prints. It fails if the program does not end. */
async function run(/** @type {string[]} */ ...args) {
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], { timeout: 60_000 });
  return stdout.trim().split("\n");
}

test("a program ends without close", async (t) => {
  const server = await serve(t, ids);
  assert.equal((await run("once", server.url)).length, 1);
});

test("a program ends while a server hangs, and while requests ahead and probes are in progress", async (t) => {
  const hung = await serve(t, hang);
  const good = await serve(t, ids);
  assert.equal((await run("hung", hung.url, good.url)).length, 1);
  assert.ok(hung.counts.length > 0);
});

test("a program waits for the calls it waits for", async (t) => {
  const server = await serve(t, (request, response, count) => void setTimeout(() => ids(request, response, count), 300));
  assert.equal((await run("once", server.url)).length, 1);
});

for (const kind of ["threads", "cluster"])
  test(`${kind} have IDs of their own`, async (t) => {
    const server = await serve(t, ids);
    const all = await run(kind, server.url);
    assert.equal(all.length, 3000);
    assert.equal(new Set(all).size, 3000);
  });

test("a sequencer cannot be sent to a thread", async (t) => {
  const server = await serve(t, ids);
  assert.deepEqual(await run("clone", server.url), ["no IDs in the copy"]);
});

// Programs that were written for one of TypeScript's ways to find packages. Since 7.0, node10 is not one.
for (const [module, resolution, name] of [
  ["node16", "node16", "a.mts"],
  ["node16", "node16", "a.cts"],
  ["nodenext", "nodenext", "a.cts"],
  ["preserve", "bundler", "a.mts"],
  ["commonjs", "node10", "a.cts"],
])
  test(`TypeScript compiles ${name} with ${resolution}, and Node runs it`, (t) => {
    const dir = mkdtempSync(join(import.meta.dirname, "../compiled-"));
    t.after(() => rmSync(dir, { recursive: true }));
    mkdirSync(join(dir, "node_modules/@firnid"), { recursive: true });
    symlinkSync(join(import.meta.dirname, ".."), join(dir, "node_modules/@firnid/client"));
    writeFileSync(
      join(dir, name ?? ""),
      `import { Client, type Sequencer, Typed } from "@firnid/client";
      import { FakeClient } from "@firnid/client/testing";
      async function main(): Promise<void> {
        await using client = new Client(["http://127.0.0.1:1"]);
        await using fake = new FakeClient();
        const orders: Sequencer<bigint> = fake.sequencer("orders");
        const ids: BigUint64Array = await orders.array(2);
        // @ts-expect-error: these have 128 bits
        await fake.sequencer128("traces").array(1).catch(async () => console.log(client.servers().length, ids, new Typed("order").format(await orders.next())));
      }
      void main();`,
    );
    const tsc = [join(import.meta.dirname, "../node_modules/typescript/bin/tsc"), name ?? "", "--strict", "--target", "es2022", "--types", "node"];
    execFileSync(process.execPath, [...tsc, "--module", module ?? "", "--moduleResolution", resolution ?? ""], { cwd: dir });
    const printed = execFileSync(process.execPath, [(name ?? "").replace("ts", "js")], { cwd: dir, encoding: "utf8" });
    assert.match(printed, /^1 BigUint64Array\(2\) \[.*\] order_\w{13}\n$/);
  });

test("the types need no other package", () => {
  for (const name of ["index", "client", "sequencer", "errors", "format", "json", "testing", "typed", "veil"]) {
    const text = readFileSync(new URL(`../dist/${name}.d.ts`, import.meta.url), "utf8");
    assert.doesNotMatch(text, /"node:|NodeJS\.|: Buffer|reference types/, name);
  }
});
