from __future__ import annotations

import _thread
import importlib.util
import logging
import os
import pickle
import ssl
import struct
import subprocess
import sys
import threading
import time
import unittest
import uuid
from pathlib import Path
from unittest import mock

from servers import FakeServer, eventually, packed, problem, reply

import firn
from firn import _client, _health
from firn.aio import AsyncClient
from firn.testing import FakeClient

logging.getLogger("firn").addHandler(logging.NullHandler())


class Case(unittest.TestCase):
    def servers(self, n: int) -> list[FakeServer]:
        all_servers = [FakeServer() for _ in range(n)]
        for server in all_servers:
            self.addCleanup(server.close)
        return all_servers

    def client(self, *servers: FakeServer, **options: object) -> firn.Client:
        client = firn.Client([s.url for s in servers], **options)  # type: ignore[arg-type]
        self.addCleanup(client.close)
        return client

    def fails(self, client: firn.Client, kind: type[firn.FirnError], text: str) -> firn.FirnError:
        with self.assertRaises(kind) as caught:
            client.sequencer("orders").next()
        self.assertIn(text, str(caught.exception))
        return caught.exception


class Ids(Case):
    def test_next_counts_up(self) -> None:
        client = self.client(*self.servers(1))
        orders = client.sequencer("orders")
        self.assertIs(orders, client.sequencer("orders"))
        ids = [orders.next() for _ in range(5000)]
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual(next(iter(orders)), ids[-1] + 1)

    def test_take_asks_for_exactly_these(self) -> None:
        (server,) = self.servers(1)
        orders = self.client(server).sequencer("orders")
        self.assertEqual(len(set(orders.take(1) + orders.take(7))), 8)
        self.assertEqual(server.counts, [1, 7])
        for n in (0, -1):
            with self.assertRaisesRegex(firn.OptionError, "1 or more"):
                orders.take(n)
        with self.assertRaises(TypeError):
            orders.take(1.5)  # type: ignore[call-overload]

    def test_take_splits(self) -> None:
        (server,) = self.servers(1)
        ids = self.client(server).sequencer("orders").take(250_000)
        self.assertEqual(server.counts, [100_000, 100_000, 50_000])
        self.assertEqual(len(set(ids)), 250_000)

    def test_array_without_numpy(self) -> None:
        (server,) = self.servers(1)
        orders = self.client(server).sequencer("orders")
        missing = mock.patch.dict(sys.modules, {"numpy": None})
        with missing, self.assertRaisesRegex(ImportError, "array needs NumPy: pip install numpy"):
            orders.array(1)

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "no NumPy here")
    def test_array(self) -> None:
        (server,) = self.servers(1)
        orders = self.client(server).sequencer("orders")
        ids = orders.array(100_002)
        self.assertEqual((server.counts, str(ids.dtype)), ([100_000, 2], "int64"))
        self.assertEqual(len(set(ids.tolist())), 100_002)
        self.assertEqual(orders.take(1), [ids.tolist()[-1] + 1])
        for numbers, text in (
            ((5, 5), "an ID twice"),
            ((0, 5), "the ID 0"),
            ((7,), "it has 8 bytes, but 2 IDs"),
            ((1, 2, 3, 4), "128 bits and are UUID, not int"),
            ((9, 1 << 63), 'dtype="uint64"'),
        ):
            server.answer = lambda n, x=numbers: packed(struct.pack(f">{len(x)}Q", *x))
            with self.assertRaisesRegex(firn.FirnError, text):
                orders.array(2)
        server.answer = lambda n: packed(struct.pack(">2Q", 1 << 63, 7))
        self.assertEqual(orders.array(2, "uint64").tolist(), [1 << 63, 7])
        with self.assertRaisesRegex(firn.UnavailableError, "cache"):
            orders.array(2, "uint64")
        with self.assertRaisesRegex(firn.OptionError, "dtype"):
            orders.array(2, "float64")
        server.answer = lambda n: packed(struct.pack(">4Q", 1, 2, 3, 4))
        with self.assertRaisesRegex(firn.OptionError, "UUID"):
            self.client(server).sequencer("orders").array(2)
        self.assertEqual(str(FakeClient().sequencer("a").array(3).dtype), "int64")

    def test_take_as_texts(self) -> None:
        (server,) = self.servers(1)
        server.answer = lambda n: reply("200 OK", "text/plain", b"a1\nB2\n")
        orders = self.client(server).sequencer("orders")
        self.assertEqual(orders.take(2, "base62"), ["a1", "B2"])
        self.assertIn("count=2&format=base62 ", server.requests[0])
        with self.assertRaisesRegex(firn.FirnError, "3 lines"):
            orders.take(3, "base62")
        with self.assertRaisesRegex(firn.OptionError, "format"):
            orders.take(3, "x&y")

    def test_uuids(self) -> None:
        (server,) = self.servers(1)
        server.answer = lambda n: packed(b"".join(uuid.uuid4().bytes for _ in range(n)))
        client = self.client(server)
        self.assertIsInstance(client.sequencer("a").next(), uuid.UUID)
        self.assertIsInstance(client.sequencer("b", uuid.UUID).take(2)[1], uuid.UUID)
        with self.assertRaisesRegex(firn.FirnError, "128 bits and are UUID, not int"):
            client.sequencer("c", int).next()
        with self.assertRaisesRegex(firn.OptionError, "UUID, not int"):
            client.sequencer("b", int)

    def test_threads_share_one_request(self) -> None:
        (server,) = self.servers(1)
        server.hung.set()
        orders = self.client(server, batch=1000).sequencer("orders")
        ids: list[int] = []
        threads = [threading.Thread(target=lambda: ids.append(orders.next())) for _ in range(50)]
        for thread in threads:
            thread.start()
        self.assertTrue(eventually(lambda: len(server.counts) == 1))
        server.hung.clear()
        server.resume.set()
        for thread in threads:
            thread.join(20)
        self.assertEqual(len(set(ids)), 50)
        self.assertEqual(server.counts[0], 1000)

    def test_crowd(self) -> None:
        orders = self.client(*self.servers(2)).sequencer("orders")
        drawn: list[list[int]] = []

        def run() -> None:
            drawn.append([orders.next() for _ in range(20_000)])

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({i for ids in drawn for i in ids}), 80_000)

    def test_batch_follows_use(self) -> None:
        (server,) = self.servers(1)
        orders = self.client(server, batch=16, max_batch=64).sequencer("orders")
        now = [1000.0]
        with mock.patch.object(_client, "_clock", lambda: now[0]):
            for _ in range(500):
                orders.next()
            self.assertTrue(eventually(lambda: orders._fetching is None))
            self.assertEqual(server.counts[:4], [16, 32, 64, 64])
            server.counts.clear()
            other = self.client(server, batch=64).sequencer("other")
            for _ in range(5):
                other.next()
                now[0] += 601
            self.assertEqual(server.counts, [64, 32, 16, 8, 4])

    def test_old_ids_are_not_used(self) -> None:
        orders = self.client(*self.servers(1)).sequencer("orders")
        now = [1000.0]
        with mock.patch.object(_client, "_clock", lambda: now[0]):
            first = orders.next()
            now[0] += 599
            self.assertEqual(orders.next(), first + 1)
            now[0] += 1
            self.assertGreaterEqual(orders.next(), first + 100)

    def test_ids_of_a_late_answer_are_old(self) -> None:
        (server,) = self.servers(1)
        orders = self.client(server).sequencer("orders")
        now = [1000.0]

        def late(count: int) -> bytes:
            ids = packed(server.ids(count))
            now[0] += 600
            return ids

        server.answer = late
        with mock.patch.object(_client, "_clock", lambda: now[0]):
            orders.next()  # it waited for the answer
            orders.next()
            orders.next()
        self.assertEqual(len(server.counts), 3)

    def test_fetch_ahead_fails_unseen(self) -> None:
        (server,) = self.servers(1)
        orders = self.client(server, batch=80, patience=0.2).sequencer("orders")
        orders.next()
        server.answer = lambda n: problem("503 Service Unavailable", "draining", "stopping")
        for _ in range(70):
            orders.next()
        self.assertTrue(eventually(lambda: orders._fetching is None))
        server.answer = None
        for _ in range(200):
            orders.next()

    def test_validity_may_be_tiny(self) -> None:
        orders = self.client(*self.servers(1), validity=1e-9).sequencer("orders")
        self.assertLess(orders.next(), orders.next())


class Answers(Case):
    def test_unusable(self) -> None:
        (server,) = self.servers(1)
        cases = {
            "it has 7 bytes, but 2 IDs": packed(b"1234567"),
            "it has 0 bytes": packed(b""),
            "more than 32": packed(bytes(33)),
            "the ID 0": packed(bytes(16)),
            "an ID twice": packed(b"12345678" * 2),
            "text/html": reply("200 OK", "text/html", b"<p>hello"),
            "not HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
            "another request": packed(b"12345678abcdefgh").replace(
                b"\r\n", b"\r\nFirn-Nonce: x\r\n", 1
            ),
            "no Content-Length": packed(b"12345678abcdefgh").replace(b"Content-Length", b"X"),
            "no answer|closed": b"",
        }
        server.close_after = True
        for text, answer in cases.items():
            with self.subTest(text):
                server.answer = lambda n, answer=answer: answer
                client = self.client(server, patience=0.3)
                with self.assertRaisesRegex(firn.UnavailableError, text):
                    client.sequencer("orders").take(2)

    def test_cached_answer(self) -> None:
        (server,) = self.servers(1)
        server.answer = lambda n: packed(struct.pack(f">{n}Q", *range(5, 5 + n)))
        orders = self.client(server, patience=0.3).sequencer("orders")
        orders.take(2)
        with self.assertRaisesRegex(firn.UnavailableError, "cache"):
            orders.take(2)

    def test_header_of_a_request(self) -> None:
        (server,) = self.servers(1)
        tokens = iter(["firn_1\n", "firn_2"])
        orders = self.client(server, token=lambda: next(tokens)).sequencer("orders")
        orders.take(1)
        orders.take(1)
        self.assertIn("POST /v1/sequencers/orders/next?count=1 HTTP/1.1", server.requests[0])
        self.assertIn("Authorization: Bearer firn_1", server.requests[0])
        self.assertIn("Authorization: Bearer firn_2", server.requests[1])
        self.assertEqual(server.connections, 1)  # it is kept
        with self.assertRaisesRegex(firn.TokenError, "StopIteration"):
            orders.take(1)


class Servers(Case):
    @mock.patch.object(_health, "SLOW", 2.0)  # so that the good one is never as slow
    def test_hung_server_costs_one_call(self) -> None:
        hung, good = self.servers(2)
        client = self.client(hung, good)
        orders = client.sequencer("orders")
        hung.hung.set()
        for _ in range(40):
            orders.take(2)
        self.assertEqual(hung.counts.count(2), 1)
        self.assertLessEqual(set(hung.counts), {1, 2})  # others are probes
        self.assertIn("no answer after", str(client.servers()[0].error))
        hung.hung.clear()
        hung.resume.set()
        self.assertTrue(eventually(lambda: self.works(orders)))

    def works(self, orders: firn.Sequencer[int]) -> bool:
        """Report whether calls use all servers again."""
        orders.take(1)
        return all(s.error is None for s in orders._client.servers())

    def test_retry_after(self) -> None:
        asking, good = self.servers(2)
        asking.answer = lambda n: problem(
            "503 Service Unavailable", "busy", "no room", "Retry-After: 7"
        )
        client = self.client(asking, good)
        for _ in range(20):
            client.sequencer("orders").take(1)
        status = client.servers()
        self.assertEqual(len(asking.counts), 1)
        health = client.sequencer("orders")._view._own[client._roster.servers[0]]
        self.assertTrue(health.asked)
        self.assertGreater(health.until - time.monotonic(), 5)
        self.assertEqual(status[0].failures, 0)  # only this sequencer is busy

        only = self.client(asking)
        error = self.fails_at_once(only)
        self.assertEqual(error.reasons[asking.url].retry_after, 7)  # type: ignore[attr-defined]

    def fails_at_once(self, client: firn.Client) -> firn.UnavailableError:
        with self.assertRaises(firn.UnavailableError) as caught:
            client.sequencer("orders").next()
        return caught.exception

    def test_advice(self) -> None:
        (server,) = self.servers(1)
        server.answer = lambda n: reply("302 Found", "text/html", b"", "Location: http://other/")
        self.fails(self.client(server), firn.ServerError, 'a redirect to "http://other/"')
        server.answer = lambda n: problem("404 Not Found", "no-sequencer", "not found")
        self.fails(self.client(server), firn.ServerError, "firn sequencer create orders")

    def test_closed_connection_is_no_failure(self) -> None:
        (server,) = self.servers(1)
        server.close_after = True
        server.answer = lambda n: packed(server.ids(n))
        client = self.client(server)
        for _ in range(10):
            client.sequencer("orders").take(1)
        self.assertEqual(client.servers()[0].failures, 0)

    def test_pauses_grow(self) -> None:
        health = _health.Health()
        error = firn.NetworkError("a", "b", "c")
        last = 0.0
        for _ in range(12):
            health.fail(time.monotonic(), error)
            last = health.until - time.monotonic()
        self.assertEqual(health.failures, 12)
        self.assertGreater(last, 4)
        self.assertLessEqual(last, 10)
        health.suspect(time.monotonic() - 30, error)
        self.assertGreater(health.probe - time.monotonic(), 29)


class Options(Case):
    def test_errors_name_the_option(self) -> None:
        url, tls = "http://127.0.0.1:1", "https://127.0.0.1:1"
        for options, text in (
            ({"servers": url}, 'servers is "http.*": write a list'),
            ({"servers": []}, "servers is empty"),
            ({"servers": ["firn://a:1"]}, "write http://"),
            ({"servers": ["http://a:99999"]}, "servers"),
            ({"servers": ["http://a@b"]}, "user name"),
            ({"servers": ["http://a b"]}, "servers"),
            ({"servers": [url, url + "/"]}, "twice"),
            ({"servers": [url], "timeout": 0}, "timeout"),
            ({"servers": [url], "patience": -1}, "patience"),
            ({"servers": [url], "validity": 0}, "validity"),
            ({"servers": [url], "batch": 0}, "batch"),
            ({"servers": [url], "max_batch": 100_001}, "max_batch"),
            ({"servers": [tls], "ca": __file__}, "ca: .*test_client"),
            ({"servers": [tls], "ca": "/nonexistent"}, "ca: /nonexistent"),
            ({"servers": [url], "tls": ssl.create_default_context()}, "https://"),
        ):
            with self.subTest(text), self.assertRaisesRegex(firn.OptionError, text):
                firn.Client(**options)
        with self.assertRaisesRegex(firn.TokenError, "space"):
            firn.Client([url], token="firn x")
        for name in ("servers", "token", "ca", "tls", "timeout", "patience", "validity", "batch"):
            for other in (5.5, "", b"10", "10", [7], True, object()):
                good = {
                    "patience": (5.5,),
                    "timeout": (5.5,),
                    "validity": (5.5,),
                    "token": ("", "10"),
                }
                if other in good.get(name, ()):
                    continue
                with (
                    self.subTest(name=name, other=other),
                    self.assertRaisesRegex(firn.FirnError, f"{name}\\b.*") as caught,
                ):
                    firn.Client(**{"servers": [tls], name: other})  # type: ignore[arg-type]
                self.assertNotIn("_ssl.c", str(caught.exception))
        for name in ("", "..", "a/b", "ä", "x" * 129):
            with self.assertRaisesRegex(firn.OptionError, "name of a sequencer"):
                firn.Client([url]).sequencer(name)

    def test_wrong_address(self) -> None:
        (server,) = self.servers(1)
        url = f"https://127.0.0.1:{server.port}"
        for bad, text in (
            (url, "does not speak TLS: write http://"),
            ("http://nosuch.invalid:3476", "unknown host name"),
            ("http://127.0.0.1:1", "connection refused"),
        ):
            with (
                self.subTest(bad),
                firn.Client([bad], patience=1) as client,
                self.assertRaisesRegex(firn.UnavailableError, text),
            ):
                client.sequencer("orders").next()

    def test_clients_cannot_be_pickled(self) -> None:
        client = self.client(*self.servers(1))
        of_loops = AsyncClient(["http://127.0.0.1:1"])
        for value in client, client.sequencer("a"), of_loops, of_loops.sequencer("a"):
            with self.assertRaisesRegex(TypeError, "make a client in each process"):
                pickle.dumps(value)

    def test_errors_can_be_pickled(self) -> None:
        said = firn.ServerError("a", "b", 503, "busy", "text", 2.0)
        for error in (said, firn.ClosedError("a"), firn.UnavailableError("a", {"b": said})):
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), str(again)), (type(error), str(error)))


class Ends(Case):
    def test_close(self) -> None:
        (server,) = self.servers(1)
        before = _thread._count()
        server.hung.set()
        client = firn.Client([server.url])
        orders = client.sequencer("orders")
        caught: list[BaseException] = []

        def run() -> None:
            try:
                orders.next()
            except firn.ClosedError as error:
                caught.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        self.assertTrue(eventually(lambda: len(server.counts) == 1))
        client.close()
        client.close()
        thread.join(20)
        self.assertEqual(len(caught), 1)
        with self.assertRaises(firn.ClosedError):
            orders.next()
        with self.assertRaises(firn.ClosedError):
            orders.take(1)
        with self.assertRaises(firn.ClosedError):
            client.sequencer("other")
        server.resume.set()
        self.assertTrue(eventually(lambda: _thread._count() <= before + 1))

    def test_program_ends_while_a_server_hangs(self) -> None:
        (server,) = self.servers(1)
        program = f"""
import firn, threading
client = firn.Client([{server.url!r}])
client.sequencer("a").next()
threading.Thread(target=client.sequencer("b").next, daemon=True).start()
print("end")
"""
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(Path(firn.__file__).parent.parent)},
            capture_output=True,
            timeout=60,
            check=False,
        )
        self.assertEqual((done.stdout, done.stderr, done.returncode), (b"end\n", b"", 0))


@unittest.skipUnless(os.environ.get("FIRN_URL"), "FIRN_URL names no server")
class RealServer(unittest.TestCase):
    def test_real_server(self) -> None:
        with firn.Client([os.environ["FIRN_URL"]]) as client:
            orders = client.sequencer("orders")
            ids = [orders.next() for _ in range(10_000)] + orders.take(1000)
            self.assertEqual(len(set(ids)), 11_000)
            self.assertEqual(len(orders.take(2, "base62")[0]), 11)


class Speed(Case):
    def test_next_takes_no_lock(self) -> None:
        orders = self.client(*self.servers(1)).sequencer("orders")
        orders.next()
        with orders._client._lock:
            orders.next()


if __name__ == "__main__":
    unittest.main()
