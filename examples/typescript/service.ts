import { createServer, type Server } from "node:http";
import { stringify, UnavailableError, type Sequencers } from "@firnid/client";

/** Returns a web service that creates orders. */
export function service(ids: Sequencers): Server {
  const orders = ids.sequencer("orders");
  return createServer((request, response) => {
    void (async () => {
      try {
        const order = { id: await orders.next(), path: request.url };
        response.writeHead(201, { "Content-Type": "application/json" });
        response.end(stringify(order)); // {"id":"118277211164393472","path":"/"}
      } catch (error) {
        console.error(error);
        response.writeHead(error instanceof UnavailableError ? 503 : 500).end();
      }
    })();
  });
}
