"""A web shop, as ../webshop is one in Go: an order has one ID in three forms.

It is a number in the database, order_… for the staff and in the log, and v1_… in
the URLs that customers see, which tells neither when nor how many orders were made.

    pip install "firn-id[veil]"
    umask 077; openssl rand -hex 32 > veil.keys
    firn serve & python webshop.py
    curl -s -d item=tea localhost:8080/orders   # {"url": "/orders/v1_…"}
    curl -s localhost:8080/orders/v1_…
    curl -s localhost:8081/orders/order_…       # for the staff
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs

import firn
from firn.veil import Veiled

Answer = dict[str, str]

ORDER = firn.Typed("order")


class Shop:
    def __init__(self, ids: firn.Sequencer[int], public: Veiled[int], database: str) -> None:
        self.ids, self.public, self.database = ids, public, database
        with self.transaction() as db:
            db.execute("CREATE TABLE IF NOT EXISTS orders (id bigint PRIMARY KEY, item text)")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.database)) as db, db:
            yield db

    def place(self, item: str) -> Answer:
        id = self.ids.next()
        with self.transaction() as db:
            db.execute("INSERT INTO orders VALUES (?, ?)", (id, item))
        print("order placed:", ORDER.format(id), file=sys.stderr)  # order_…
        return {"url": "/orders/" + self.public.format(id)}  # /orders/v1_…

    def track(self, text: str) -> Answer:
        """Show an order to anyone who has its URL.

        Most made-up texts unveil to some ID: only the row tells whether it is that of
        an order. A plain ID is an error: nobody can count through the orders.
        """
        return {"item": self.find(self.public.parse(text))}

    def inspect(self, text: str) -> Answer:
        """Show an order to the staff, who see and type order_…."""
        return {"id": text, "item": self.find(ORDER.parse(text))}

    def find(self, id: int) -> str:
        with self.transaction() as db:
            row = db.execute("SELECT item FROM orders WHERE id = ?", (id,)).fetchone()
        if row is None:
            raise LookupError("no such order")
        return str(row[0])


class Handler(BaseHTTPRequestHandler):
    routes: dict[str, Callable[[str], Answer]] = {}

    def do_GET(self) -> None:
        path, _, text = self.path.rpartition("/")
        self.answer("GET " + path, text)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
        self.answer("POST " + self.path, form.get("item", [""])[0])

    def answer(self, route: str, text: str) -> None:
        try:
            status, body = 200, self.routes[route](text)
        except firn.ParseError as error:
            status, body = 400, {"error": str(error)}
        except LookupError:
            status, body = 404, {"error": "not found"}
        except firn.FirnError as error:
            status, body = 503, {"error": str(error)}
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())


def serve(port: int, routes: dict[str, Callable[[str], Answer]]) -> None:
    handler = type("Handler", (Handler,), {"routes": routes})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    Thread(target=server.serve_forever).start()
    print(f"http://127.0.0.1:{server.server_port}/orders", flush=True)


if __name__ == "__main__":
    servers = os.environ.get("FIRN_SERVERS", "http://127.0.0.1:3476").split(",")
    public, staff = (int(port) for port in os.environ.get("PORTS", "8080,8081").split(","))
    keys = Path("veil.keys").read_text()
    shop = Shop(firn.Client(servers).sequencer("orders"), Veiled(keys, "orders"), "shop.db")
    serve(public, {"POST /orders": shop.place, "GET /orders": shop.track})
    serve(staff, {"GET /orders": shop.inspect})
