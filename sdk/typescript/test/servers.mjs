// Servers for tests.
import { createServer } from "node:http";
import { createServer as createServerTLS } from "node:https";
import { createServer as createServerTCP } from "node:net";
import { once } from "node:events";

/** @typedef {(request: import("node:http").IncomingMessage, response: import("node:http").ServerResponse, count: number) => void} Handler */

let last = 0n;

/** Returns count IDs that no other call returns, packed. */
export function pack(/** @type {number} */ count, size = 8) {
  const bytes = Buffer.alloc(count * size);
  for (let i = 0; i < count; i++) bytes.writeBigUInt64BE(++last, i * size + size - 8);
  return bytes;
}

/** Answers with packed IDs, or with runs, as Firn does. @type {Handler} */
export function ids(request, response, count) {
  const bytes = pack(count);
  if (!request.url?.includes("runs=true")) return answer(request, response, bytes);
  const runs = [0, count >> 1].map((at, i) => ({ first: bytes.toString("hex", 8 * at, 8 * at + 8), step: "1", count: i === 0 ? count >> 1 : count - (count >> 1) }));
  json(request, response, { runs: runs.filter((r) => r.count > 0) });
}

/** Answers with JSON. */
export function json(/** @type {import("node:http").IncomingMessage} */ request, /** @type {import("node:http").ServerResponse} */ response, /** @type {unknown} */ value) {
  answer(request, response, Buffer.from(JSON.stringify(value)), { "Content-Type": "application/json" });
}

/** Answers with a body. */
export function answer(/** @type {import("node:http").IncomingMessage} */ request, /** @type {import("node:http").ServerResponse} */ response, /** @type {Buffer} */ body, headers = {}) {
  response.writeHead(200, {
    "Content-Type": "application/octet-stream",
    "Content-Length": body.length,
    "Firn-Nonce": request.headers["firn-nonce"],
    ...headers,
  });
  response.end(body);
}

/** Returns a handler that answers with a problem. @returns {Handler} */
export function problem(/** @type {number} */ status, /** @type {string} */ kind, headers = {}) {
  return (_request, response) => {
    response.writeHead(status, { "Content-Type": "application/problem+json", ...headers });
    response.end(JSON.stringify({ type: `urn:firn:problem:${kind}`, status, detail: `the detail of ${kind}` }));
  };
}

/** Does not answer. @type {Handler} */
export function hang() {}

/**
 * Starts a server on a free port, which is closed at the end of the test. Its handler can be
 * replaced.
 */
export async function serve(/** @type {import("node:test").TestContext} */ t, /** @type {Handler} */ handler, /** @type {import("node:https").ServerOptions | undefined} */ tls = undefined) {
  const s = {
    handler,
    /** @type {number[]} The count of each request. */
    counts: [],
    /** @type {import("node:http").IncomingHttpHeaders[]} */
    headers: [],
    /** @type {Set<import("node:net").Socket>} */
    sockets: new Set(),
    connections: 0,
    url: "",
    close: async () => {
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
  const listener = (/** @type {import("node:http").IncomingMessage} */ request, /** @type {import("node:http").ServerResponse} */ response) => {
    const count = Number(new URL(request.url ?? "", "http://x").searchParams.get("count"));
    s.counts.push(count);
    s.headers.push(request.headers);
    s.handler(request, response, count);
  };
  const server = tls ? createServerTLS(tls, listener) : createServer(listener);
  server.keepAliveTimeout = 120_000; // as of Firn
  server.on("connection", (socket) => {
    s.connections++;
    s.sockets.add(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  s.url = `${tls ? "https" : "http"}://127.0.0.1:${port(server)}`;
  t.after(s.close);
  return s;
}

/** Starts a server that writes bytes and closes the connection. */
export async function serveBytes(/** @type {import("node:test").TestContext} */ t, /** @type {(request: string) => Buffer | string} */ bytes) {
  const server = createServerTCP((socket) => {
    socket.once("data", (data) => socket.end(bytes(data.toString("latin1"))));
    socket.on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${port(server)}`;
}

/** Returns the URL of a port where nothing listens. */
export async function nobody() {
  const server = createServerTCP();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const free = port(server);
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${free}`;
}

/** Waits until a condition holds. */
export async function until(/** @type {() => boolean} */ condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

function port(/** @type {import("node:net").Server} */ server) {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

