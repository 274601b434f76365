"""A web service that gives each order an ID: POST /orders."""

from __future__ import annotations

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import firn

ORDER = firn.Typed("order")


def make_order(orders: firn.Sequencer[int], item: str) -> dict[str, str]:
    return {"id": ORDER.format(orders.next()), "item": item}


def serve(client: firn.Client, port: int) -> ThreadingHTTPServer:
    orders = client.sequencer("orders")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            item = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            try:
                status, answer = 201, make_order(orders, item)
            except firn.FirnError as error:
                status, answer = 503, {"error": str(error)}
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    servers = os.environ.get("FIRN_SERVERS", "http://127.0.0.1:3476").split(",")
    with firn.Client(servers) as client:
        serve(client, 8080).serve_forever()
