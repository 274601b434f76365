"""Requests over HTTP/1.1, on connections that are kept."""

from __future__ import annotations

import encodings.idna  # noqa: F401  # see test_requests_import_nothing
import http.client
import json
import os
import re
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from urllib.parse import urlsplit

from .errors import (
    AnswerError,
    FirnError,
    NetworkError,
    OptionError,
    ServerError,
    TLSError,
    check_text,
    printable,
    quote,
)

# A server closes a connection after 2 minutes without requests.
KEEP_IDLE = 90.0
MAX_PROBLEM = 16 << 10

OpenTLS = Callable[[], ssl.SSLContext]


class Server:
    """One of the servers of a client, with its connections."""

    def __init__(self, name: str, open_tls: OpenTLS) -> None:
        want = "write http://HOST:PORT or https://HOST:PORT"
        check_text(f"servers: {quote(name)}", name)
        try:
            url = urlsplit(name)
            host, port = url.hostname, url.port
        except ValueError as error:
            raise OptionError(f"servers: {quote(name)}: {error}; {want}") from None
        if url.scheme not in ("http", "https") or not host:
            raise OptionError(f"servers: {quote(name)} is not the URL of a server; {want}")
        if url.username is not None or url.query or url.fragment:
            fault = "a user name, a query or a fragment is not allowed"
            raise OptionError(f"servers: {quote(name)}: {fault}; {want}")
        if not (name.isascii() and name.isprintable()) or " " in name:
            raise OptionError(f"servers: {quote(name)} has a character that URLs do not have")
        self.name = name
        self.secure = url.scheme == "https"
        self.host: str = host
        self.port = port if port is not None else 443 if self.secure else 80
        self.path = url.path.rstrip("/")
        self._open_tls = open_tls
        self._idle: deque[tuple[http.client.HTTPConnection, float]] = deque()
        self._all: set[http.client.HTTPConnection] = set()  # also those in use
        self._closed = False

    def acquire(self, timeout: float) -> tuple[http.client.HTTPConnection, bool]:
        """Return a connection, and whether it was used before."""
        while True:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                break
            if time.monotonic() - since < KEEP_IDLE and connection.sock is not None:
                connection.sock.settimeout(timeout)
                return connection, True
            self.discard(connection)
        connection = self._new(timeout)
        self._all.add(connection)
        return connection, False

    def _new(self, timeout: float) -> http.client.HTTPConnection:
        if self.secure:
            return http.client.HTTPSConnection(
                self.host, self.port, timeout=timeout, context=self._open_tls()
            )
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def release(self, connection: http.client.HTTPConnection) -> None:
        """Keep a connection for the next request."""
        self._idle.append((connection, time.monotonic()))
        if self._closed:
            self.close()

    def discard(self, connection: http.client.HTTPConnection) -> None:
        self._all.discard(connection)
        connection.close()

    def close(self) -> None:
        """Close idle connections and end requests in progress."""
        self._closed = True
        idle, self._idle = self._idle, deque()
        for connection, _ in idle:
            self.discard(connection)
        for connection in tuple(self._all):
            interrupt(connection)

    def forked(self) -> None:
        """Drop the parent's connections in a child process, without a byte on the wire."""
        for connection in tuple(self._all):
            sock = connection.sock
            if sock is None:
                continue
            try:
                is_ours = sock.getpeername()[1:2] == (self.port,)
            except OSError:
                is_ours = False  # the child has closed it, and may have another file there
            descriptor = sock.detach()
            if is_ours and descriptor >= 0:
                os.close(descriptor)
        self._idle, self._all = deque(), set()


def interrupt(connection: http.client.HTTPConnection) -> None:
    """End what another thread does on a connection."""
    sock = connection.sock
    if sock is not None:
        try:
            # Not SSLSocket's own method, which would make the reader continue
            # without TLS.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended already


class Request:
    """A request for IDs to one server. run is called once; abort by any thread."""

    def __init__(
        self,
        server: Server,
        sequencer: str,
        path: str,
        accept: str,
        token: Callable[[], str],
        count: int,
    ) -> None:
        self.server = server
        self.count = count
        self.start = time.monotonic()
        self.answer: bytes | FirnError | None = None
        self._sequencer = sequencer
        self._path = path
        self._nonce = os.urandom(16).hex()  # a fork copies the state of random
        self._headers = {
            "Accept": accept,
            "User-Agent": "firn-python",
            "Firn-Nonce": self._nonce,
        }
        self._token = token
        self._connection: http.client.HTTPConnection | None = None
        self._aborted = False

    def run(self, timeout: float, most: int) -> None:
        """Send the request and set answer to the body, of at most most bytes, or an error."""
        try:
            self.answer = self._try(timeout, most)
        except FirnError as error:
            self.answer = error
        except ssl.SSLEOFError:
            self.answer = self._network("the server closed the connection")
        except ssl.SSLError as error:
            self.answer = TLSError(self._sequencer, self.server.name, _tls_reason(error))
        except TimeoutError:
            self.answer = self.late()
        except http.client.HTTPException as error:
            if isinstance(error, http.client.IncompleteRead):
                self.answer = self._network("the answer was cut off")
            elif isinstance(error, http.client.RemoteDisconnected):
                self.answer = self._network("the server closed the connection")
            else:
                text = quote(printable(str(error).strip())[:80])
                self.answer = self.unusable(f"it is not HTTP: {text}; is this a Firn server?")
        except ConnectionRefusedError:
            self.answer = self._network("connection refused: does the server run there?")
        except socket.gaierror:
            self.answer = self._network("unknown host name: correct the option servers")
        except (OSError, ValueError) as error:
            self.answer = self._network(getattr(error, "strerror", None) or str(error))

    def abort(self) -> None:
        self._aborted = True
        connection = self._connection
        if connection is not None:
            interrupt(connection)

    def late(self) -> NetworkError:
        """The error of a request without an answer until now."""
        return self._network(f"no answer after {time.monotonic() - self.start:.2f} s")

    def _network(self, reason: str) -> NetworkError:
        return NetworkError(self._sequencer, self.server.name, reason)

    def unusable(self, reason: str) -> AnswerError:
        return AnswerError(self._sequencer, self.server.name, reason)

    def _try(self, timeout: float, most: int) -> bytes:
        token = self._token()
        if token:
            self._headers["Authorization"] = "Bearer " + token
        while True:
            self._connection, used = connection, _ = self.server.acquire(timeout)
            keep = False
            try:
                if connection.sock is None:
                    connection.connect()
                if self._aborted:
                    raise self.late()
                path = self.server.path + self._path
                connection.request("POST", path, headers=self._headers)
                with connection.getresponse() as response:
                    try:
                        return self._read(response, most)
                    finally:  # keep it if the whole answer was read
                        keep = not response.will_close and response.isclosed()
            except (ConnectionError, ssl.SSLEOFError):
                # The server has closed an idle connection. It made no IDs, and
                # if it did, they are lost.
                if not used or self._aborted:
                    raise
            finally:
                if keep and not self._aborted:
                    self.server.release(connection)
                else:
                    self.server.discard(connection)

    def _read(self, response: http.client.HTTPResponse, most: int) -> bytes:
        if response.status != 200:
            raise self._problem(response)
        if response.getheader("Firn-Nonce", self._nonce) != self._nonce:
            raise self.unusable("it is the answer to another request: a cache is in between")
        got, want = response.headers.get_content_type(), self._headers["Accept"]
        if got != want:
            raise self.unusable(f"it is {quote(got)}, not {want}; is this a Firn server?")
        if response.chunked:
            body = response.read(most + 1)
        elif response.length is None:
            raise self.unusable("it has no Content-Length, so it may have been cut off")
        elif response.length <= most:
            body = response.read()  # with a size, it would not notice a cut
        else:
            raise self.unusable(f"it has {response.length} bytes, more than {most}")
        if len(body) > most:
            raise self.unusable(f"it has more than {most} bytes")
        return body

    def _problem(self, response: http.client.HTTPResponse) -> ServerError:
        kind = detail = ""
        try:
            if response.length is not None and response.length <= MAX_PROBLEM:
                data = response.read()
            else:
                data = response.read(MAX_PROBLEM)
        except http.client.HTTPException:
            data = b""
        text = data.decode("utf-8", "replace").strip()
        location = response.getheader("Location")
        if response.headers.get_content_type() == "application/problem+json":
            try:
                problem = json.loads(text)
            except (ValueError, RecursionError):
                problem = None
            if isinstance(problem, dict):
                kind = str(problem.get("type", "")).partition("urn:firn:problem:")[2]
                detail = str(problem.get("detail") or problem.get("title") or "")
        elif location and 300 <= response.status < 400:
            detail = "a redirect to " + quote(location)
        elif text:
            detail = "the answer begins with " + quote(text)
        after = response.getheader("Retry-After", "")  # seconds; anything else is ignored
        return ServerError(
            self._sequencer,
            self.server.name,
            response.status,
            printable(kind),
            printable(detail),
            float(after) if re.fullmatch("[0-9]{1,9}", after) else 0.0,
        )


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message.rstrip(".")
        return f"the certificate is not trusted: {why}; set the option ca, or correct servers"
    reason = error.reason or ""
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
        return "the server does not speak TLS: write http:// in the option servers"
    if "CERTIFICATE" in reason:
        return "the server wants a client certificate that it trusts: load one into the option tls"
    return (
        f"TLS failed: {reason.lower().replace('_', ' ') or 'no reason given'}; check the option tls"
    )
