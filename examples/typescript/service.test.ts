import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { UnavailableError } from "@firnid/client";
import { FakeClient } from "@firnid/client/testing";
import { order, service } from "./service.js";

test("an order has an ID", async (t) => {
  const ids = new FakeClient({ now: () => Date.UTC(2026, 6, 1), node: 1 });
  const server = service(ids).listen(0);
  t.after(() => server.close());
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

  const response = await fetch(url);
  assert.deepEqual(await response.json(), { id: order.format(65592203673604097n), path: "/" });

  ids.error = new UnavailableError("orders", []);
  assert.equal((await fetch(url)).status, 503);
});
