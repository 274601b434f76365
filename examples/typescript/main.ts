import { Client } from "@firnid/client";
import { service } from "./service.js";

const client = new Client(["http://127.0.0.1:3476", "http://127.0.0.1:3477"], {
  log: (event) => console.warn(event.message, event.server, event.error?.message ?? ""),
});
const server = service(client).listen(8080);
process.once("SIGTERM", () => {
  server.close(() => void client.close());
});
