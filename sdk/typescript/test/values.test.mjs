import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { format, installToJSON, replacer, UnavailableError } from "@firnid/client";
import { FakeClient } from "@firnid/client/testing";

test("JSON keeps every digit", () => {
  assert.equal(JSON.stringify({ id: 117232474546765824n, n: 1, list: [1n] }, replacer), '{"id":"117232474546765824","n":1,"list":["1"]}');
  assert.equal(JSON.stringify([2n ** 64n - 1n], replacer), '["18446744073709551615"]');
  assert.throws(() => JSON.stringify(1n), TypeError, "nothing global is changed before");
  installToJSON();
  assert.equal(JSON.stringify({ id: 9007199254740993n }), '{"id":"9007199254740993"}');
});

test("formats are those of the server", () => {
  // From firn convert --to, and testdata/vectors.
  for (const [id, name, want] of /** @type {[bigint | string, string, string][]} */ ([
    [117232474546765824n, "dec", "117232474546765824"],
    [117232474546765834n, "hex", "01a07e508180000a"],
    [117232474546765825n, "base62", "08evPSHnw1J"],
    [117232474546765825n, "flake62", "8evPSHnw1J"],
    [117232474546765825n, "base58", "1GnRoKGx1jv"],
    [117232474546765825n, "base36", "00W2BFZBGCKQP"],
    [117232474546765825n, "base32", "0383YA20R0001"],
    [117232474546765825n, "base17", "00BE3B38414AC3GD"],
    [0n, "flake62", "0"],
    [0n, "hex", "0000000000000000"],
    [1n, "base32", "0000000000001"],
    [1n, "flake32", "1"],
    [1n, "base58", "11111111112"],
    [2n ** 64n - 1n, "base32", "FZZZZZZZZZZZZ"],
    [2n ** 64n - 1n, "base16", "FFFFFFFFFFFFFFFF"],
    [5n, "bin", "101".padStart(64, "0")],
    ["0000018b-cfe5-6800-ffff-ffffffff8000", "dec", "31359464925324684491273709518848"],
    ["0000018b-cfe5-6800-ffff-ffffffff8000", "flake62", "AboKHPfZvePUStfgB6"],
    ["0000018b-cfe5-6800-ffff-ffffffff8000", "hex", "0000018bcfe56800ffffffffffff8000"],
    ["0000018B-cfe5-6800-ffff-ffffffff8000", "uuid", "0000018b-cfe5-6800-ffff-ffffffff8000"],
  ]))
    assert.equal(format(id, name), want, `${id} ${name}`);
  for (const name of ["base1", "base63", "flake1", "base62-fixed", "raw", "", "dec-", "uuid", "constructor"]) assert.throws(() => format(1n, name), /is not a format/);
  for (const id of [-1n, 2n ** 64n]) assert.throws(() => format(id, "dec"), RangeError);
  assert.throws(() => format("123", "dec"), TypeError);
});

test("formats agree with the vectors of other systems", (t) => {
  const root = process.env.FIRN_ROOT;
  if (!root) return t.skip("FIRN_ROOT is not set");
  const rows = (/** @type {string} */ name) => readFileSync(`${root}/testdata/vectors/${name}`, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  const uuid = (/** @type {bigint} */ n) => n.toString(16).padStart(32, "0").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  let compared = 0;
  for (const { int, base, text } of rows("boundary-bases.ndjson")) {
    const n = BigInt(int);
    if (n < 0n) continue;
    assert.equal(format(uuid(n), `flake${base}`), text);
    compared++;
  }
  for (const { hex, dec, base62 } of rows("boundary.ndjson")) {
    assert.equal(format(uuid(BigInt(`0x${hex}`)), "dec"), dec);
    assert.equal(format(uuid(BigInt(dec)), "flake62"), base62);
    compared++;
  }
  assert.ok(compared > 100);
});

test("a fake gives increasing IDs of the clock and the node", async () => {
  let now = Date.UTC(2026, 6, 1);
  const client = new FakeClient({ now: () => now, node: 5 });
  const s = client.sequencer("orders");
  const time = BigInt(now - Date.UTC(2026, 0, 1)) << 22n;
  const first = (await s.next()) ?? 0n;
  assert.equal(first, time | (5n << 12n) | 1n);
  assert.notEqual(BigInt(Number(first)), first, "a test notices rounding");
  assert.equal(s.tryNext(), first + 1n);
  const many = await s.take(5000);
  assert.deepEqual(await s.array(2), BigUint64Array.of((many.at(-1) ?? 0n) + 1n, (many.at(-1) ?? 0n) + 2n));
  assert.ok(many.every((id, i) => i === 0 || id > (many[i - 1] ?? 0n)));
  now -= 1000; // a clock that goes back
  assert.ok((await s.next()) > (many.at(-1) ?? 0n));
  now += 60_000;
  assert.equal(await s.next(), (BigInt(now - Date.UTC(2026, 0, 1)) << 22n) | (5n << 12n) | 1n);
  assert.equal(client.sequencer("orders"), s);
  for await (const id of client.sequencer("other")) {
    assert.equal(typeof id, "bigint");
    break;
  }
});

test("a fake gives the same UUIDs in every run", async () => {
  const draw = async (/** @type {number} */ seed) => new FakeClient({ seed }).sequencer128("traces").take(5000);
  const all = await draw(1);
  assert.deepEqual(all, await draw(1));
  assert.notDeepEqual(all, await draw(2));
  assert.deepEqual(all, [...new Set(all)].sort());
  for (const id of all) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test("a fake fails as the test asks", async () => {
  const client = new FakeClient();
  const s = client.sequencer("orders");
  client.error = new UnavailableError("orders", []);
  await assert.rejects(s.next(), UnavailableError);
  await assert.rejects(s.take(2), UnavailableError);
  assert.equal(s.tryNext(), undefined);
  client.error = undefined;
  await s.next();
  await assert.rejects(s.take(0), RangeError);
  await client.close();
  await assert.rejects(s.next(), { name: "ClosedError" });
  for (const options of /** @type {any[]} */ ([{ node: 1024 }, { node: "5" }, { node: 5n }, { now: 5 }, { seed: "x" }])) assert.throws(() => new FakeClient(options), /(node|now|seed) is .*: it must be/);
  assert.throws(() => client.sequencer("a b"), /is not the name of a sequencer/);
});
