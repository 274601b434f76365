import { createServer, type Server } from "node:http";
import { Typed, UnavailableError, type Sequencers } from "@firnid/client";

export const order = new Typed("order");

/** Returns a web service that creates orders. */
export function service(ids: Sequencers): Server {
  const orders = ids.sequencer("orders");
  return createServer((request, response) => {
    void (async () => {
      try {
        const created = { id: order.format(await orders.next()), path: request.url };
        response.writeHead(201, { "Content-Type": "application/json" });
        response.end(JSON.stringify(created)); // {"id":"order_03887nf7a8003","path":"/"}
      } catch (error) {
        console.error(error);
        response.writeHead(error instanceof UnavailableError ? 503 : 500).end();
      }
    })();
  });
}
