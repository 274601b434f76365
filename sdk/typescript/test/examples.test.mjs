// Runs the programs in examples/typescript, from which docs/typescript.md and docs/orm.md take their code.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { ids, nobody, serve } from "./servers.mjs";

const root = process.env.FIRN_ROOT;
const skip = root ? false : "FIRN_ROOT is not set";
const env = { ...process.env };
delete env.NODE_TEST_CONTEXT; // a run of tests of their own
const run = (/** @type {string[]} */ ...args) => promisify(execFile)(process.execPath, args, { env });

/**
 * Copies the examples to a directory where the package is installed. A text
 * that replaced another is not replaced again: a port may contain another's.
 */
function copy(/** @type {import("node:test").TestContext} */ t, /** @type {Record<string, string>} */ replace) {
  const places = new RegExp(Object.keys(replace).join("|"), "g");
  const dir = mkdtempSync(join(import.meta.dirname, "../examples-"));
  t.after(() => rmSync(dir, { recursive: true }));
  cpSync(`${root}/examples/typescript`, dir, { recursive: true });
  for (const name of readdirSync(dir)) {
    const text = readFileSync(join(dir, name), "utf8");
    writeFileSync(join(dir, name), text.replace(places, (from) => replace[from] ?? ""));
  }
  mkdirSync(join(dir, "node_modules/@firnid"), { recursive: true });
  symlinkSync(join(import.meta.dirname, ".."), join(dir, "node_modules/@firnid/client"));
  return dir;
}

test("the first program prints IDs", { skip }, async (t) => {
  const [a, b] = [await serve(t, ids), await serve(t, ids)];
  const { stdout } = await run(join(copy(t, { "http://127.0.0.1:3476": a.url, "http://127.0.0.1:3477": b.url }), "ids.mjs"));
  assert.match(stdout, /^\d+n 10\ntrue\ntrue\n$/);
});

test("the service works and has a test without a server", { skip }, async (t) => {
  const [a, b] = [await serve(t, ids), await serve(t, ids)];
  const url = await nobody();
  const port = new URL(url).port;
  const dir = copy(t, { "http://127.0.0.1:3476": a.url, "http://127.0.0.1:3477": b.url, 8080: port });
  await run(join(import.meta.dirname, "../node_modules/typescript/bin/tsc"), "-p", dir);
  await run("--test", ...readdirSync(join(dir, "out")).filter((name) => name.endsWith(".test.js")).map((name) => join(dir, "out", name)));
  const program = spawn(process.execPath, [join(dir, "out/main.js")], { stdio: "ignore" });
  t.after(() => program.kill("SIGKILL"));
  const get = async () => (await fetch(url)).status;
  let status = 0;
  while (program.exitCode === null && status === 0) {
    status = await get().catch(() => 0);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(status, 201);
  await a.close();
  for (let i = 0; i < 300; i++) assert.equal(await get(), 201);
  program.kill("SIGTERM");
  assert.deepEqual(await once(program, "exit"), [0, null]);
});

test("the code of the pages is that of the examples", { skip }, () => {
  const all = ["typescript", "typescript-orm"].flatMap((dir) =>
    readdirSync(`${root}/examples/${dir}`).map((name) => readFileSync(`${root}/examples/${dir}/${name}`, "utf8")));
  const pages = ["typescript.md", "orm.md"].map((name) => readFileSync(`${root}/docs/${name}`, "utf8")).join("");
  const blocks = [...pages.matchAll(/^```(?:js|ts)\n(.*?)^```$/gms)].map((m) => m[1] ?? "");
  assert.ok(blocks.length > 3);
  for (const block of blocks) assert.ok(all.some((text) => text.includes(block)), `not in examples/typescript:\n${block}`);
});
