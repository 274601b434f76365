"""A child takes no ID, lock or connection of its parent, however it was forked."""

from __future__ import annotations

import asyncio
import ctypes
import importlib.util
import os
import random
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from servers import FakeServer, ServerProcess, eventually

import firn
from firn import _client
from firn.aio import AsyncClient, AsyncSequencer
from firn.testing import FakeClient

PYTHON_FORK: Callable[[], int] = getattr(os, "fork", int)


def c_fork() -> int:
    """Fork as an application server written in C does: Python does not notice."""
    return int(ctypes.PyDLL(None).fork())


def run_in_child(fork: Callable[[], int], function: Callable[[], object]) -> str:
    """Return what a function returns in a child, as text."""
    read, write = os.pipe()
    child = fork()
    if child == 0:
        try:
            try:
                text = repr(function())
            except BaseException as error:
                text = f"raised {error!r}"
            os.write(write, text.encode())
        finally:
            os._exit(0)
    os.close(write)
    try:
        ready, _, _ = select.select([read], [], [], 60)
        return os.read(read, 1 << 16).decode() if ready else "hangs"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)


def locks(found: object, seen: set[int]) -> Iterator[threading.Lock]:
    """Find all locks that an object of this package refers to."""
    if id(found) in seen:
        return
    seen.add(id(found))
    if isinstance(found, type(threading.Lock())):
        yield found
    elif isinstance(found, dict):
        for value in found.values():
            yield from locks(value, seen)
    elif type(found).__module__.startswith("firn"):
        yield from locks(getattr(found, "__dict__", {}), seen)


@contextmanager
def held(all_locks: list[threading.Lock]) -> Iterator[None]:
    """Have another thread hold locks."""
    holds, end = threading.Event(), threading.Event()

    def hold() -> None:
        for lock in all_locks:
            lock.acquire()
        holds.set()
        end.wait()
        for lock in all_locks:
            lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait()
    try:
        yield
    finally:
        end.set()
        thread.join()


def calls(cls: type) -> list[str]:
    """The public methods of a class, and those of its protocols."""
    protocols = {"__next__", "__enter__", "__exit__", "__anext__", "__aexit__"}
    missing = set() if importlib.util.find_spec("numpy") else {"array"}
    names = [n for n in dir(cls) if callable(getattr(cls, n)) and n not in missing]
    return [n for n in names if n[0] != "_" or n in protocols]


ARGUMENTS = {
    "take": (3,),
    "array": (3,),
    "sequencer": ("other",),
    "__exit__": (None,) * 3,
    "__aexit__": (None,) * 3,
}


@unittest.skipUnless(hasattr(os, "fork"), "no fork here")
class Forks(unittest.TestCase):
    def setUp(self) -> None:
        self.server = ServerProcess()
        self.addCleanup(self.server.close)

    def test_every_call_in_every_child(self) -> None:
        for kind in (firn.Client, AsyncClient, FakeClient):
            for fork in (PYTHON_FORK, c_fork):
                for page in (_client._page, _client._Process):
                    inner = AsyncSequencer if kind is AsyncClient else firn.Sequencer
                    for name in calls(kind) + calls(inner):
                        with self.subTest(f"{kind.__name__} {fork} {page} {name}"):
                            self.one_call(kind, fork, page, name)

    def one_call(
        self,
        kind: Any,
        fork: Callable[[], int],
        page: Callable[[], object],
        name: str,
    ) -> None:
        """Make a call in a child while a thread of the parent holds all locks."""
        with mock.patch.object(_client, "_page", page):
            client = kind() if kind is FakeClient else kind([self.server.url])
        self.addCleanup(client._close)
        orders, gone = client.sequencer("orders"), client.sequencer("gone")
        inner = [s._sequencer if isinstance(s, AsyncSequencer) else s for s in (orders, gone)]
        for sequencer in inner:
            sequencer.next()
        inner[1].close()
        settled = lambda: inner[0]._fetching is None and client._workers._idle > 0  # noqa: E731
        self.assertTrue(kind is FakeClient or eventually(settled))
        before, _ = self.server.seen()
        peers = [c.sock.getsockname() for c in client._roster.servers[0]._all]

        def call(of: object) -> object:
            result = getattr(of, name)(*ARGUMENTS.get(name, ()))
            return asyncio.run(result) if asyncio.iscoroutine(result) else result

        def closed() -> object:
            try:
                return call(gone)
            except firn.ClosedError:
                return None

        def child() -> object:
            found = call(orders if name in dir(orders) else client)
            self.assertEqual(client.servers()[0].failures, 0)
            mine = [c.sock.getsockname() for c in client._roster.servers[0]._all]
            self.assertEqual([p for p in peers if p in mine], [])
            return found

        seen: set[int] = set()
        with held([*locks(client, seen), *locks(inner[1], seen)]):
            said = run_in_child(fork, child)
            also = run_in_child(fork, closed) if name in dir(orders) else ""
        self.assertNotRegex(said + also, "raised|hangs")
        if kind is FakeClient:
            return
        mine = [inner[0].next() for _ in range(250)] + inner[0].take(3)
        of_child = {int(n) for n in re.findall(r"\b\d+\b", said)} if "next" in name else set()
        self.assertEqual(of_child & set(mine), set())
        self.assertLessEqual(self.server.seen()[0], before + 2)  # a child, and its second one

    def test_requests_import_nothing(self) -> None:
        """A thread of the parent may be in an import, whose lock a child has for ever."""
        program = (
            "import sys, firn, firn.aio\n"
            "had, client = set(sys.modules), firn.Client([sys.argv[1]])\n"
            "client.sequencer('orders').next(), client.sequencer('orders').take(3)\n"
            "print(sorted(set(sys.modules) - had))\n"
        )
        path = str(Path(firn.__file__).parent.parent)
        found = subprocess.run(
            [sys.executable, "-c", program, self.server.url],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(found.stdout, "[]\n", found.stderr)

    def test_threads_of_a_child_start_anew_once(self) -> None:
        client = firn.Client([self.server.url])
        self.addCleanup(client.close)
        orders = client.sequencer("orders")
        orders.next()

        def child() -> list[int]:
            drawn: list[int] = []
            go = threading.Barrier(8)
            reset, resets = client._roster.reset, []

            def slowly() -> None:
                resets.append(1)
                for _ in range(1000):
                    time.sleep(0)  # so that other threads run
                reset()

            def draw() -> None:
                go.wait()
                drawn.extend(orders.next() for _ in range(40))

            client._roster.reset = slowly  # type: ignore[method-assign]
            threads = [threading.Thread(target=draw) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return [*drawn, -len(resets)]

        drawn = [int(n) for n in re.findall(r"-?\d+", run_in_child(c_fork, child))]
        self.assertEqual((len(set(drawn)), drawn[-1]), (321, -1))
        self.assertEqual(set(drawn) & {orders.next() for _ in range(150)}, set())

    def test_threads_of_the_parent_are_drawing(self) -> None:
        client = firn.Client([self.server.url])
        self.addCleanup(client.close)
        orders = client.sequencer("orders")
        stop = threading.Event()
        drawn: list[list[int]] = [[] for _ in range(4)]

        def draw(own: list[int]) -> None:
            while not stop.is_set() and len(own) < 1_000_000:
                own.append(orders.next())

        threads = [threading.Thread(target=draw, args=(own,)) for own in drawn]
        for thread in threads:
            thread.start()
        try:
            texts = [
                run_in_child(PYTHON_FORK, lambda: [orders.next() for _ in range(300)])
                for _ in range(10)
            ]
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        of_children = [int(n) for text in texts for n in re.findall(r"\d+", text)]
        self.assertEqual((len(of_children), len(set(of_children))), (3000, 3000))
        self.assertEqual(set(of_children) & {n for own in drawn for n in own}, set())

    def test_children_differ(self) -> None:
        client = firn.Client([self.server.url])
        self.addCleanup(client.close)
        orders = client.sequencer("orders")
        for _ in range(4):
            random.seed(7)  # a fork in C copies the state of random
            self.assertRegex(run_in_child(c_fork, lambda: orders.take(1)), r"^\[\d+\]$")
        _, requests = self.server.seen()
        nonces = [re.search("Firn-Nonce: (.*)", r) for r in requests]
        self.assertEqual(len({n and n[1] for n in nonces}), 4)

    def test_files_of_a_child_stay_open(self) -> None:
        """A daemon closes its parent's files, and opens others at their numbers."""
        client = firn.Client([self.server.url])
        self.addCleanup(client.close)
        orders = client.sequencer("orders")
        orders.next()
        (connection,) = client._roster.servers[0]._all
        number = connection.sock.fileno()

        def child() -> int:
            a, b = socket.socketpair()
            os.dup2(a.fileno(), number)
            orders.next()
            os.write(number, b"x")
            with a, b:
                return len(b.recv(1))

        self.assertEqual(run_in_child(c_fork, child), "1")

    def test_grandchildren(self) -> None:
        client = firn.Client([self.server.url])
        self.addCleanup(client.close)
        orders = client.sequencer("orders")

        def family(depth: int) -> list[object]:
            orders.next()
            below = run_in_child(c_fork, lambda: family(depth - 1)) if depth else ""
            return [below, *(orders.next() for _ in range(120))]

        drawn = re.findall(r"\d+", str(family(4)))
        self.assertEqual((len(drawn), len(set(drawn))), (600, 600))


APPLICATION = """
import os
import firn
orders = firn.Client([os.environ["FAKE"]]).sequencer("orders")
for _ in range(int(os.environ["WARM"])):
    orders.next()  # when the application is loaded
def draw(n):
    return [orders.next() for _ in range(30)]
def application(environ, start):
    start("200 OK", [("Content-Type", "text/plain")])
    return [repr(draw(0)).encode()]
"""
POOL = """
import multiprocessing, sys
from application import draw
if __name__ == "__main__":
    how = multiprocessing.get_context(sys.argv[1])
    if sys.argv[1] == "forkserver":
        how.set_forkserver_preload(["application"])
    with how.Pool(4) as pool:
        print(pool.map(draw, range(40), chunksize=1), draw(0))
"""
SERVERS = {
    "gunicorn": ["--preload", "--workers=4", "--bind=unix:http.sock", "application"],
    "uwsgi": ["--master", "--processes=4", "--http-socket=http.sock", "--module=application"],
}


@unittest.skipUnless(hasattr(os, "fork"), "no fork here")
class Programs(unittest.TestCase):
    """Programs that load an application, which takes IDs, and fork then."""

    def setUp(self) -> None:
        self.fake = FakeServer()
        self.addCleanup(self.fake.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "application.py").write_text(APPLICATION)
        (self.folder / "pool.py").write_text(POOL)

    def start(self, *command: str, warm: int = 1) -> subprocess.Popen[bytes]:
        path = f"{Path(firn.__file__).parent.parent}:{self.folder}"
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path, "FAKE": self.fake.url, "WARM": str(warm)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def test_pools(self) -> None:
        for how in ("fork", "forkserver", "spawn"):
            with self.subTest(how):
                program = self.start(sys.executable, "pool.py", how)
                printed = program.communicate(timeout=120)[0].decode()
                drawn = re.findall(r"\d+", printed)
                self.assertEqual((len(drawn), len(set(drawn))), (1230, 1230), printed[-2000:])

    def test_application_servers(self) -> None:
        for name, options in SERVERS.items():
            command = Path(sys.executable).parent / name
            if not command.exists():
                continue  # test.sh says so
            for warm in (1, 2000):  # with threads of the parent in progress
                with self.subTest(f"{name} {warm}"):
                    self.one_server([str(command), *options], warm)

    def one_server(self, command: list[str], warm: int) -> None:
        program = self.start(*command, warm=warm)
        try:
            answers: list[str] = []

            def ask() -> bool:
                with socket.socket(socket.AF_UNIX) as http:
                    http.settimeout(60)
                    try:
                        http.connect(str(self.folder / "http.sock"))
                    except OSError:
                        return False  # not yet
                    http.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    answer = b"".join(iter(lambda: http.recv(65536), b""))
                    answers.append(answer.decode().partition("\r\n\r\n")[2])
                    return True

            self.assertTrue(eventually(ask, 60))
            for _ in range(20):
                crowd = [threading.Thread(target=ask) for _ in range(4)]
                for thread in crowd:
                    thread.start()
                for thread in crowd:
                    thread.join()
            drawn = re.findall(r"\d+", str(answers))
            self.assertEqual((len(drawn), len(set(drawn))), (81 * 30, 81 * 30))
        finally:
            os.killpg(program.pid, signal.SIGKILL)
            program.communicate()
            (self.folder / "http.sock").unlink(missing_ok=True)


if __name__ == "__main__":
    unittest.main()
