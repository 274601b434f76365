"""A server for tests: it answers what a test tells it to, byte by byte."""

from __future__ import annotations

import itertools
import json
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

Answer = Callable[[int], bytes]


def reply(status: str, kind: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def packed(ids: bytes) -> bytes:
    return reply("200 OK", "application/octet-stream", ids)


def problem(status: str, kind: str, detail: str, *headers: str) -> bytes:
    body = {"type": "urn:firn:problem:" + kind, "title": kind, "detail": detail}
    return reply(status, "application/problem+json", json.dumps(body).encode(), *headers)


class FakeServer:
    """Gives counting IDs unless answer is set to a function of the requested count."""

    numbers = itertools.count(1)  # of all servers, so that no ID comes twice
    guard = threading.Lock()

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.hung = threading.Event()  # set: requests wait until it is cleared
        self.resume = threading.Event()
        self.close_after = False  # the connection, as a stopping server does
        self.counts: list[int] = []
        self.requests: list[str] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.resume.set()
        for connection in [self._listener, *self._open]:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        file = connection.makefile("rb")
        try:
            while True:
                lines = []
                if file.peek(1)[:1] == b"\x16":  # TLS
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    return
                while (line := file.readline()) not in (b"\r\n", b""):
                    lines.append(line.decode())
                if not lines:
                    return
                self.requests.append("".join(lines))
                found = re.search(r"count=(\d+)", lines[0])
                count = int(found[1]) if found else 0
                self.counts.append(count)
                if self.hung.is_set():
                    self.resume.wait(20)
                if self.answer is not None:
                    connection.sendall(self.answer(count))
                    if self.close_after:
                        return
                else:
                    connection.sendall(packed(self.ids(count)))
        except (OSError, ValueError):
            return  # closed by the other side, or by the test
        finally:
            file.close()
            connection.close()

    @classmethod
    def ids(cls, count: int) -> bytes:
        with cls.guard:
            return struct.pack(f">{count}Q", *itertools.islice(cls.numbers, count))


class ServerProcess:
    """A FakeServer in a process of its own.

    C code that forks while another thread wants the interpreter's lock leaves
    a child that can hang: a test that forks so must not run a server beside it.
    """

    def __init__(self) -> None:
        command = [sys.executable, __file__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        (self.url,) = self._read()

    def close(self) -> None:
        self._process.communicate()

    def seen(self) -> tuple[int, list[str]]:
        """Return how many connections it got, and its requests."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        connections, requests = self._read()
        return connections, requests

    def _read(self) -> list[Any]:
        assert self._process.stdout
        return list(json.loads(self._process.stdout.readline()))


def eventually(true: Callable[[], bool], seconds: float = 20) -> bool:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


if __name__ == "__main__":
    server = FakeServer()
    print(json.dumps([server.url]), flush=True)
    for _ in sys.stdin:
        print(json.dumps([server.connections, server.requests]), flush=True)
