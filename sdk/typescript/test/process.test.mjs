import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
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

test("the types need no other package", () => {
  for (const name of ["index", "client", "sequencer", "errors", "format", "json", "testing", "typed", "veil"]) {
    const text = readFileSync(new URL(`../dist/${name}.d.ts`, import.meta.url), "utf8");
    assert.doesNotMatch(text, /"node:|NodeJS\.|: Buffer|reference types/, name);
  }
});
