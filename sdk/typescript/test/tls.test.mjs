import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, after, test } from "node:test";
import { Client } from "@firnid/client";
import { ids, serve } from "./servers.mjs";

const dir = mkdtempSync(join(tmpdir(), "firn-"));
const file = (/** @type {string} */ name) => join(dir, name);
let skip = "";

/** Makes a certificate for 127.0.0.1 that signs itself. */
function certificate(/** @type {string} */ name) {
  const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout", file(`${name}.key`), "-out", file(`${name}.crt`), ...subject], { stdio: "pipe" });
  return { key: readFileSync(file(`${name}.key`)), cert: readFileSync(file(`${name}.crt`)) };
}

before(() => {
  try {
    execFileSync("openssl", ["version"], { stdio: "pipe" });
  } catch {
    skip = "no openssl here";
  }
});
after(() => rmSync(dir, { recursive: true }));

test("https, certificates that change, and those that are not trusted", async (t) => {
  if (skip) return t.skip(skip);
  const [old, next] = [certificate("old"), certificate("next")];
  const server = await serve(t, ids, old);
  let trusted = old.cert;
  const client = new Client([server.url], { tls: () => ({ ca: trusted }), patience: 2000 });
  t.after(() => client.close());
  const s = client.sequencer("orders");
  assert.equal((await s.take(3)).length, 3);
  assert.equal((await s.take(3)).length, 3);
  assert.equal(server.connections, 1, "the connection is kept");

  await server.close();
  const renewed = await serve(t, ids, next);
  const other = new Client([renewed.url], { tls: () => ({ ca: trusted }), patience: 2000 });
  t.after(() => other.close());
  await assert.rejects(other.sequencer("orders").take(1), /set the option tls\.ca to the certificate of the server's authority/);
  const asked = renewed.connections;
  await assert.rejects(other.sequencer("orders").take(1));
  assert.equal(renewed.connections, asked + 1, "a retry does not change a certificate");
  trusted = next.cert;
  assert.equal((await other.sequencer("orders").take(1)).length, 1);

  const plain = new Client([renewed.url.replace("https:", "http:")], { patience: 2000 });
  t.after(() => plain.close());
  await assert.rejects(plain.sequencer("orders").take(1), /no server gives IDs/);

  const mutual = await serve(t, ids, { ...next, ca: old.cert, requestCert: true, rejectUnauthorized: true });
  const nameless = new Client([mutual.url], { tls: { ca: next.cert }, patience: 2000 });
  t.after(() => nameless.close());
  await assert.rejects(nameless.sequencer("orders").take(1), (/** @type {Error} */ e) => /set the options tls\.cert and tls\.key|socket hang up/.test(e.message) && !/SSL routines|\n/.test(e.message));
  const named = new Client([mutual.url], { tls: { ca: next.cert, ...old } });
  t.after(() => named.close());
  assert.equal((await named.sequencer("orders").take(1)).length, 1);
});
