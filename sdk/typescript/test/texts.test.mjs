import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ParseError, Typed, Veiled } from "@firnid/client";

const root = process.env.FIRN_ROOT;
const skip = root ? false : "FIRN_ROOT is not set";
const read = (/** @type {string} */ name) => JSON.parse(readFileSync(`${root}/${name}`, "utf8"));
const key = "00".repeat(32);

/** Reports whether f throws a ParseError with this text. */
function fails(/** @type {() => void} */ f, /** @type {string} */ want) {
  assert.throws(f, (/** @type {Error} */ error) => error instanceof ParseError && error.message.includes(want) && error.message.length < 400, want);
}

test("typed texts pass the examples of TypeID", { skip }, () => {
  const all = read("typed/testdata/typeid.json");
  assert.deepEqual([all.valid.length, all.invalid.length], [9, 19]);
  for (const { typeid, prefix, uuid } of all.valid) {
    assert.equal(new Typed(prefix).format(uuid), typeid);
    assert.equal(new Typed(prefix).parse128(typeid), uuid);
  }
  for (const { name, typeid } of all.invalid) {
    const prefix = typeid.slice(0, Math.max(0, typeid.lastIndexOf("_")));
    const typed = new Typed(/^[a-z]([a-z_]*[a-z])?$/.test(prefix) && prefix.length < 64 ? prefix : "");
    assert.throws(() => typed.parse128(typeid), ParseError, name);
  }
});

test("errors of typed texts name the character", () => {
  const order = new Typed("order");
  assert.equal(order.format(117383499776000003n), "order_03887nf7a8003");
  assert.equal(order.parse("order_03887nf7a8003"), 117383499776000003n);
  for (const [text, want] of /** @type {[string, string][]} */ ([
    ["order_03887Nf7a8003", '"N" at offset 11 is in upper case; it may mean "n"'],
    ["order_o388r6f3g1w03", '"o" at offset 6 is not a digit; it may mean "0"'],
    ["order_0388r6f3gIw03", '"I" at offset 15 is not a digit; it may mean "1"'],
    ["order_0388r6f3guw03", '"u" at offset 15 is not a digit; it may mean "v"'],
    ["order_0388r6f3g1é03", '"é" at offset 16 is not a digit; digits are'],
    ["order_0388r6f3g1w0", "it has 12 digits"],
    ["order_g000000000000", '"g" at offset 6 is more than "f"'],
    ["order_00000000000000000000000000", "it has 128 bits after the prefix, not 64"],
    ["Order_0388r6f3g1w03", 'prefix "Order" has "O" at offset 0'],
    ["order__0388r6f3g1w03", "begins or ends with an underscore"],
    ["_0388r6f3g1w03", "is empty"],
    ["user_0388r6f3g1w03", 'its prefix is "user", not "order"'],
    ["0388r6f3g1w03", 'its prefix is "", not "order"'],
    ["", 'its prefix is "", not "order"'],
    ["order_03887nf7a8003\n", "is not a digit"],
    ["order_" + "0".repeat(100_000), "it has 100000 digits"],
  ]))
    fails(() => order.parse(text), want);
  for (const prefix of ["Order", "order1", "_a", "a_", "a\n", "x".repeat(64)]) assert.throws(() => new Typed(prefix), TypeError);
  for (const other of /** @type {any[]} */ ([5, null, undefined, ["x"]])) {
    const veiled = new Veiled(key, "orders");
    for (const parse of [order, veiled]) {
      fails(() => parse.parse(other), "it is not a string");
      fails(() => parse.parse128(other), "it is not a string");
      assert.throws(() => parse.format(other), /is not an ID/);
    }
    for (const make of [() => new Typed(other), () => new Veiled(other, "orders"), () => new Veiled(key, other)]) assert.throws(make, /it must be a string/);
  }
  for (const id of [-1n, 2n ** 64n, "1"]) assert.throws(() => order.format(id), /is not an ID of/);
});

test("veiled IDs pass the vectors of the specification", { skip }, () => {
  const all = read("veil/testdata/vectors.json");
  assert.equal(all.length, 200);
  for (const v of all) {
    const x = new Veiled(`${v.number}:${v.key}`, v.sequencer, v.bits);
    const [id, veiled] = v.bits === 122 ? [v.id, v.veiled] : [BigInt(v.id), BigInt(v.veiled)];
    assert.equal(x.veil(id), veiled);
    assert.equal(x.unveil(veiled), id);
    assert.equal(x.format(id), v.text);
    assert.equal(v.bits === 122 ? x.parse128(v.text) : x.parse(v.text), id);
  }
});

test("a key can be replaced", () => {
  const old = new Veiled(key, "orders").format(7n);
  const both = new Veiled(`# keys\n${key}\r\n\n12: ${"0F".repeat(16)}`, "orders");
  assert.equal(both.parse(old), 7n);
  assert.ok(both.format(7n).startsWith("v12_"));
  assert.equal(both.parse(both.format(7n)), 7n);
  assert.throws(() => both.veil(7n), /give only one/);
});

test("errors of veiled texts", () => {
  const [order, session] = [new Veiled(key, "orders"), new Veiled(key, "orders", 122)];
  for (const [text, want] of /** @type {[string, string][]} */ ([
    ["order_03887nf7a8003", "does not begin with v"],
    ["v01_03887nf7a8003", "does not begin with v"],
    ["v2_03887nf7a8003", "key 2, which is not known"],
    ["v1_03887Nf7a8003", '"N" at offset 8 is in upper case'],
    ["v1_f3887nf7a8003", "is outside of 1 to 9223372036854775807"],
    ["v1_00000000000000000000000001", "it has 128 bits"],
  ]))
    fails(() => order.parse(text), want);
  fails(() => session.parse128("v1_00000000000000000000000001"), "is not a UUID of version 8");
  fails(() => session.parse("v1_03887nf7a8003"), "width");
  for (const id of [0n, 2n ** 63n, "01a07e50-8180-7007-8000-123456789abc"]) assert.throws(() => order.format(id), /ID/);
  for (const id of ["01a07e50-8180-4007-8000-123456789abc", "00000000-0000-7000-8000-000000000000"]) assert.throws(() => session.format(id), /ID/);
  for (const keys of ["", "secret", `0:${key}`, `01:${key}`, key.slice(2), `${key}\n1:${key}`])
    assert.throws(
      () => new Veiled(keys, "orders"),
      (/** @type {Error} */ error) => error instanceof TypeError && !error.message.includes("secret"),
    );
  assert.throws(() => new Veiled(key, ""), TypeError);
  // @ts-expect-error a number that the types do not allow
  assert.throws(() => new Veiled(key, "orders", 62), RangeError);
});
