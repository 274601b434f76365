"""The client and its sequencers."""

from __future__ import annotations

import concurrent.futures
import functools
import logging
import mmap
import operator
import os
import queue
import re
import ssl
import struct
import sys
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast, overload

from ._health import Call, Roster, ServerStatus, View
from ._transport import Request, Server
from ._workers import Workers
from .errors import (
    AnswerError,
    ClosedError,
    FirnError,
    NetworkError,
    OptionError,
    ServerError,
    TLSError,
    TokenError,
    UnavailableError,
    check_text,
    quote,
)

if TYPE_CHECKING:
    import numpy

MAX_COUNT = 100_000  # of a request
LONGEST = 2_147_483  # seconds that a timer of every system can count
EXAMPLE = '["http://127.0.0.1:3476"]'
PACKED = "application/octet-stream"
ARRAY = ""  # instead of a format: IDs as a NumPy array
SEGMENTS = 8  # of a block; each time one is used up, a fetch may begin

T = TypeVar("T", bound="int | uuid.UUID")
C = TypeVar("C", bound="Client")

# The clock for the age of IDs also runs while the machine is suspended.
_clock: Callable[[], float] = time.monotonic
if sys.platform == "linux":
    _clock = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME)
elif sys.platform == "darwin":
    _clock = functools.partial(time.clock_gettime, time.CLOCK_MONOTONIC)


class _Process:
    """A _Page where the kernel cannot wipe pages: a system call for each look."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def __getitem__(self, at: int) -> int:
        return int(os.getpid() == self._pid)


_Page = mmap.mmap | _Process  # its first byte is 1, but 0 in all forked children


def _page() -> _Page:
    """Return a page of this process.

    The kernel wipes it in a child, also if C code forks, which Python does not
    notice. A look costs a tenth of os.getpid.
    """
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page.madvise(18)  # MADV_WIPEONFORK, of Linux 4.14
    except (AttributeError, OSError):
        return _Process()
    page[0] = 1
    return page


class _Block(list[Any]):
    """IDs ready for use, the next one last. pop is atomic, so it needs no lock.

    The page and the deadline are checked after pop. In a child process, that
    takes nothing from its parent, and no fork is between the check and the use.
    """

    __slots__ = ("deadline", "page")
    deadline: float
    page: _Page


class BaseClient:
    """What Client and AsyncClient have in common."""

    def __init__(
        self,
        servers: Sequence[str],
        *,
        token: str | Callable[[], str] | None = None,
        ca: str | os.PathLike[str] | None = None,
        tls: ssl.SSLContext | None = None,
        timeout: float = 5.0,
        patience: float = 10.0,
        validity: float = 600.0,
        batch: int = 100,
        max_batch: int = 10_000,
        logger: logging.Logger | None = None,
    ) -> None:
        """Make a client. Times are in seconds.

        servers: URLs such as http://HOST:PORT or https://HOST:PORT/PATH.
        token: the bearer token, or a function that returns it for each request;
            it is called in a background thread.
        ca: a file with the certificates of the authorities to trust, read again
            for each connection. The default is those of the system.
        tls: an SSLContext instead, for example with a client certificate.
        timeout: how long one request to one server may take.
        patience: how long a call tries, over all servers and their pauses.
        validity: how old a fetched ID may be when it is handed out.
        batch, max_batch: how many IDs are fetched at first, and at most.
        logger: receives a warning when a server fails; the default is "firn".
        """
        if isinstance(servers, (str, bytes)) or not isinstance(servers, Iterable):
            raise OptionError(f"servers is {quote(servers)}: write a list, such as {EXAMPLE}")
        names = list(servers)
        if not names:
            raise OptionError(f"servers is empty: name at least one, such as {EXAMPLE}")
        for name, value in ("timeout", timeout), ("patience", patience), ("validity", validity):
            if not _is_number(value, (int, float)) or not 0 < value <= LONGEST:
                want = f"a number of seconds above 0, up to {LONGEST:,}"
                raise OptionError(f"{name} is {value!r}: it must be {want}")
        for name, count in ("batch", batch), ("max_batch", max_batch):
            if not _is_number(count, int) or not 1 <= count <= MAX_COUNT:
                raise OptionError(
                    f"{name} is {count!r}: it must be an integer from 1 to {MAX_COUNT:,}"
                )
        if batch > max_batch:
            raise OptionError(f"batch is {batch}: it cannot exceed max_batch, which is {max_batch}")
        if ca is not None and tls is not None:
            raise OptionError("both ca and tls are set: omit one, and load ca into tls")
        if ca is not None and not (isinstance(ca, (str, os.PathLike)) and os.fspath(ca)):
            raise OptionError(f"ca is {ca!r}: it must be the name of a file")
        if tls is not None and not isinstance(tls, ssl.SSLContext):
            raise OptionError(f"tls is {tls!r}: it must be an ssl.SSLContext")
        if logger is not None and not hasattr(logger, "warning"):
            raise OptionError(f"logger is {logger!r}: it must be a logging.Logger")
        if token is not None and not callable(token):
            token = _check_token(token)
        self._token = token
        self._ca = ca
        self._tls = tls
        self._timeout = timeout
        self._patience = patience
        self._validity = validity
        self._batch = batch
        self._max_batch = max_batch
        self._log = logger or logging.getLogger("firn")
        all_servers = [Server(name, self._open_tls) for name in names]
        if len({(s.secure, s.host, s.port, s.path) for s in all_servers}) < len(all_servers):
            raise OptionError("servers has an address twice")
        if (ca is not None or tls is not None) and not any(s.secure for s in all_servers):
            raise OptionError("ca or tls is set, but no address in servers is https://")
        if ca is not None:
            self._open_tls()
        self._roster = Roster(all_servers, timeout)
        self._sequencers: dict[str, Sequencer[Any]] = {}
        self._closed = False
        self._start()
        _clients.add(self)

    def __reduce__(self) -> NoReturn:
        raise _no_pickle(self)

    def _start(self) -> None:
        self._lock = threading.Lock()  # guards the sequencers too
        self._workers = Workers()
        self._page = _page()

    def _check(self) -> None:
        """Start anew in a child process: its parent's locks may be held for ever.

        Each call begins with it, or with the check of a block.
        """
        if self._page[0]:
            return
        # A lock of this process, for its threads: an older one may be held too.
        with _checks.setdefault(os.getpid(), threading.Lock()):
            if self._page[0]:
                return
            self._roster.reset()
            for server in self._roster.servers:
                server.forked()
            for sequencer in self._sequencers.values():
                sequencer._start()
            self._start()  # at last, because it sets the page

    def _open_tls(self) -> ssl.SSLContext:
        if self._tls is None or self._ca is not None:
            try:
                context = ssl.create_default_context(cafile=self._ca)
            except ssl.SSLError as error:
                raise OptionError(f"ca: {self._ca} has no valid certificate in PEM") from error
            except OSError as error:
                raise OptionError(f"ca: {self._ca}: {error.strerror}") from error
            context.set_alpn_protocols(["http/1.1"])
            self._tls = context
        return self._tls

    def _read_token(self) -> str:
        if not callable(self._token):
            return self._token or ""
        try:
            token = self._token()
        except Exception as error:
            raise TokenError(f"get a token: {error!r}") from error
        return _check_token(token)

    def _sequencer(self, name: str, kind: type[Any] | None) -> Sequencer[Any]:
        _check_name(name)
        self._check()
        if kind not in (None, int, uuid.UUID):
            raise OptionError(f"kind is {kind!r}: it must be int or uuid.UUID")
        with self._lock:
            if self._closed:
                raise ClosedError(name)
            found = self._sequencers.get(name)
            if found is None:
                found = self._sequencers[name] = self._make(name, kind)
            elif kind is not None and found._kind is None:
                found._kind = kind
            elif kind is not None and found._kind is not kind:
                had = found._kind and found._kind.__name__
                raise OptionError(f"the IDs of {quote(name)} are {had}, not {kind.__name__}")
            return found

    def _make(self, name: str, kind: type[Any] | None) -> Sequencer[Any]:
        return Sequencer(self, name, kind)

    def servers(self) -> list[ServerStatus]:
        """Return the state of the servers."""
        self._check()
        return self._roster.status()

    def _close(self) -> None:
        self._check()
        with self._lock:
            self._closed = True
            sequencers = list(self._sequencers.values())
        for sequencer in sequencers:
            sequencer.close()
        for server in self._roster.servers:
            server.close()
        self._workers.close()


class Client(BaseClient):
    """Gets IDs from servers that run firn serve. It is safe for use by many threads.

    A program needs only one client. It does not connect before the first ID is
    requested, so the servers may start later.
    """

    @overload
    def sequencer(self, name: str) -> Sequencer[int]: ...
    @overload
    def sequencer(self, name: str, kind: type[T]) -> Sequencer[T]: ...

    def sequencer(self, name: str, kind: type[Any] | None = None) -> Sequencer[Any]:
        """Return the sequencer of this name, the same one for each call.

        Its IDs are int for layouts of 64 bits, and uuid.UUID for those of 128.
        With a kind, int or uuid.UUID, other IDs are an error, and a type checker
        knows them. No server is asked before the first ID.
        """
        return self._sequencer(name, kind)

    def close(self) -> None:
        """End all requests and connections. Fetched IDs are lost, waiting calls fail."""
        self._close()

    def __enter__(self: C) -> C:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()


class Sequencer(Generic[T]):
    """Hands out the IDs of one name. It is safe for use by many threads.

    IDs are fetched in batches before they are needed, so that next rarely waits.
    """

    def __init__(self, client: BaseClient, name: str, kind: type[T] | None) -> None:
        self._client = client
        self._name = name
        self._kind: type[Any] | None = kind
        self._path = f"/v1/sequencers/{name}/next?count="
        self._count = client._batch
        self._most = MAX_COUNT  # how many IDs a server gives at a time
        self._last: object = None  # the first ID of the last answer
        self._closed = False
        self._start()

    def __reduce__(self) -> NoReturn:
        raise _no_pickle(self)

    def _start(self) -> None:
        # Guarded by the client's lock, except that blocks are popped without it.
        self._block = _Block()
        self._segments: deque[_Block] = deque()  # of the same batch, used next
        self._ready: deque[_Block] | None = None  # the next batch
        self._size = 0  # of the batch in use
        self._began = 0.0  # when its use began
        self._fetching: concurrent.futures.Future[None] | None = None
        self._calls: set[queue.SimpleQueue[Request | None]] = set()
        self._view: View = self._client._roster.view()

    @property
    def name(self) -> str:
        return self._name

    def next(self) -> T:
        """Return the next ID.

        It waits only if none has been fetched, for at most the client's patience.
        An error says what each server said, and the next call tries again.
        """
        block = self._block
        try:
            id: T = block.pop()
        except IndexError:
            pass
        else:
            if block.page[0] and _clock() < block.deadline:
                return id
        return self._wait()

    __next__ = next

    def __iter__(self) -> Iterator[T]:
        """All IDs to come, without an end."""
        return self

    @overload
    def take(self, n: int) -> list[T]: ...
    @overload
    def take(self, n: int, format: str) -> list[str]: ...

    def take(self, n: int, format: str | None = None) -> list[T] | list[str]:
        """Return n new IDs, which servers make now: up to 100,000 in each request.

        With a format of the server, such as "base62", they are texts.
        """
        left = check_count(n)
        if format is not None and not re.fullmatch("[A-Za-z0-9]+", check_text("format", format)):
            raise OptionError(f"format is {quote(format)}: use one such as hex or base62")
        self._client._check()
        found: list[Any] = []
        while left > 0:
            ids = self._fetch(left, format)
            left -= len(ids)
            found += ids
        return found

    def array(self, n: int, dtype: str = "int64") -> numpy.ndarray[Any, Any]:
        """Return n new IDs of 64 bits as a NumPy array, made like those of take.

        dtype: "int64", or "uint64" for layouts that use the top bit.
        """
        try:
            import numpy
        except ImportError as error:
            raise ImportError("array needs NumPy: pip install numpy") from error
        n = check_count(n)
        if dtype not in ("int64", "uint64"):
            raise OptionError(f"dtype is {quote(dtype)}: it must be int64 or uint64")
        self._check_width()
        self._client._check()
        found = numpy.empty(n, dtype)
        at = 0
        while at < n:
            ids: Any = self._fetch(n - at, ARRAY)
            self._check_width()  # the first answer says which it is
            if dtype == "int64" and ids.max() >> 63:
                raise OptionError(f'int64 does not hold ID {ids.max()}: write dtype="uint64"')
            found[at : at + len(ids)] = ids
            at += len(ids)
        return found

    def close(self) -> None:
        """End the sequencer: calls fail from now on, also those that wait."""
        client = self._client
        client._check()
        with client._lock:
            if client._sequencers.get(self._name) is self:
                del client._sequencers[self._name]
            self._closed = True
            self._block.clear()
            self._segments.clear()
            self._ready = None
            for call in self._calls:
                call.put(None)

    # Fetched IDs.

    def _wait(self) -> T:
        """Return the next ID, waiting for a batch if necessary."""
        end = time.monotonic() + self._client._patience
        waited = False
        while True:
            id, fetch, began = self._take(waited)
            if fetch is None:
                return cast(T, id)
            try:
                # A fetch of this call ends in time, and says more.
                error = fetch.exception(None if began else end - time.monotonic())
            except concurrent.futures.TimeoutError:
                error = UnavailableError(self._name, self._view.reasons())
                waited = True
            # A fetch that began before this call does not answer it.
            if error is not None and (began or waited):
                raise error
            waited = True

    def _take(self, waited: bool) -> tuple[Any, concurrent.futures.Future[None] | None, bool]:
        """Return the next ID, or the fetch in progress and whether it began now.

        A call that waited for a batch gets an ID from it, however short the
        validity is.
        """
        self._client._check()
        start = None
        try:
            with self._client._lock:
                while True:
                    if self._closed:
                        raise ClosedError(self._name)
                    block = self._block
                    if not block:
                        if self._segments:
                            self._block = self._segments.popleft()
                        elif self._ready:
                            self._segments, self._ready = self._ready, None
                            self._size = sum(map(len, self._segments))
                            self._began = time.monotonic()
                        else:
                            break
                    elif not waited and _clock() >= block.deadline:
                        left = len(block) + sum(map(len, self._segments))
                        if left > self._size / 2:
                            self._count = max(self._count // 2, 1)
                        block.clear()
                        self._segments.clear()
                        self._size = 0
                    else:
                        try:
                            id = block.pop()
                        except IndexError:  # next was faster
                            continue
                        left = len(block) + sum(map(len, self._segments))
                        if left <= self._size / 2 and not self._ready and not self._fetching:
                            start = self._begin(left)
                        return id, None, False
                if self._fetching is None:
                    start = self._begin(0)
                return None, self._fetching, start is not None
        finally:
            if start is not None:
                self._client._workers.run(start)

    def _begin(self, left: int) -> Callable[[], None]:
        """Begin a fetch: the caller runs the result when it has released the lock."""
        used = self._size - left
        took = time.monotonic() - self._began
        if used and took * self._size / used < 1:  # a batch lasts less than 1 s
            self._count = min(self._count * 2, self._client._max_batch)
        fetch: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._fetching = fetch
        fetch.set_running_or_notify_cancel()  # nobody who waits can cancel it
        return functools.partial(self._run, fetch, self._count)

    def _run(self, fetch: concurrent.futures.Future[None], count: int) -> None:
        error: BaseException | None = None
        ready: deque[_Block] | None = None
        # A server may make the IDs at once, however late they arrive.
        deadline = _clock() + self._client._validity
        try:
            ids = self._fetch(count, None)
            size = -(-len(ids) // SEGMENTS)
            ready = deque()
            for at in range(0, len(ids), size):
                block = _Block(ids[at : at + size])
                block.reverse()
                block.page, block.deadline = self._client._page, deadline
                ready.append(block)
        except BaseException as caught:
            error = caught
        with self._client._lock:
            if self._fetching is fetch:
                self._fetching = None
                if not self._closed:
                    self._ready = ready
        if error is not None:
            fetch.set_exception(error)
        else:
            fetch.set_result(None)

    # Requests.

    def _fetch(self, count: int, format: str | None) -> list[Any]:
        """Get up to count IDs from any server."""
        results: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        call = Call(min(count, self._most))
        pending: set[Request] = set()
        with self._client._lock:
            if self._closed:
                raise ClosedError(self._name)
            self._calls.add(results)
        try:
            return self._exchange(call, results, pending, format)
        finally:
            with self._client._lock:
                self._calls.discard(results)
            for request in pending:
                self._view.late(request.server, request.start, request.late())
                request.abort()

    def _exchange(
        self,
        call: Call,
        results: queue.SimpleQueue[Request | None],
        pending: set[Request],
        format: str | None,
    ) -> list[Any]:
        view, timeout = self._view, self._client._timeout
        end = time.monotonic() + self._client._patience
        hedge = 0.0  # when another server is asked beside the pending ones
        while True:
            if self._closed:
                raise ClosedError(self._name)
            now = time.monotonic()
            if now >= end:
                for late in pending:
                    view.late(late.server, late.start, late.late())
                raise self._give_up(call, pending)
            wake = end
            if not pending or now >= hedge:
                for late in pending:
                    view.late(late.server, late.start, late.late())
                server, probes, pause = view.pick(call, {r.server for r in pending})
                for suspect in probes:
                    self._probe(suspect)
                if server is not None:
                    pending.add(self._send(server, call.count, format, results.put))
                    hedge = now + min(view.hedge_after(), (end - now) / 2)
                elif pending:
                    hedge = now + pause if pause else end  # all others are being asked, or paused
                elif call.refusal or pause == 0 or now + pause > end:
                    # Servers agree that the request is wrong: others do not help.
                    raise call.refusal or self._give_up(call)
                else:
                    wake = now + pause
            if pending:
                wake = min(wake, hedge, min(r.start for r in pending) + timeout)
            try:
                request = results.get(timeout=max(0.0, wake - now))
            except queue.Empty:
                now = time.monotonic()
                for late in [r for r in pending if now - r.start >= timeout]:
                    pending.remove(late)
                    late.abort()
                    self._failed(call, late.server, late.start, late.late())
                    if len(call.tried) == len(self._client._roster.servers):
                        call.count = max(1, call.count // 2)  # too many for all of them?
                continue
            if request not in pending or request is None:
                continue
            pending.remove(request)
            count, answer = request.count, request.answer
            try:
                if isinstance(answer, BaseException):
                    raise answer
                ids = self._parse(request, format)
            except TokenError:
                raise
            except ServerError as error:
                if error.kind == "batch-too-large" and count > 1:
                    self._most = call.count = count // 2
                else:
                    self._failed(call, request.server, request.start, error)
            except FirnError as error:
                self._failed(call, request.server, request.start, error)
            else:
                self._worked(request)
                return ids

    def _send(
        self,
        server: Server,
        count: int,
        format: str | None,
        done: Callable[[Request], None],
    ) -> Request:
        path, accept, most = f"{self._path}{count}", PACKED, 16 * count
        if format:
            path, accept, most = f"{path}&format={format}", "text/plain", 1024 + 130 * count
        client = self._client
        request = Request(server, self._name, path, accept, client._read_token, count)

        def run() -> None:
            request.run(client._timeout, most)
            done(request)

        client._workers.run(run)
        return request

    def _probe(self, server: Server) -> None:
        """Ask a suspect for one ID, which is lost."""

        def done(request: Request) -> None:
            if self._closed:
                return
            if isinstance(request.answer, bytes) and len(request.answer) in (8, 16):
                self._worked(request, probe=True)
            elif isinstance(request.answer, (ServerError, NetworkError)):
                self._failed(Call(1), server, request.start, request.answer)

        self._send(server, 1, None, done)

    def _worked(self, request: Request, probe: bool = False) -> None:
        if self._view.worked(request.server, request.start, probe, request.late()):
            self._client._log.info("server answers again: %s", request.server.name)

    def _failed(self, call: Call, server: Server, start: float, error: FirnError) -> None:
        whole = True
        call.tried.add(server)
        if isinstance(error, ServerError):
            whole = error.of_server
            if not error.temporary:
                call.refused[server] = error
            if error.of_request:
                call.refusal = call.refusal or error
        elif isinstance(error, AnswerError):
            whole = False  # perhaps only of this sequencer
            call.refused[server] = error
        elif isinstance(error, TLSError):
            call.refused[server] = error
        if self._view.failed(server, start, whole, error):
            self._client._log.warning("server failed: %s", error)

    def _give_up(self, call: Call, pending: Iterable[Request] = ()) -> FirnError:
        refused = list(call.refused.values())
        kinds = {(e.status, e.kind) if isinstance(e, ServerError) else None for e in refused}
        all_refuse = len(refused) == len(self._client._roster.servers)
        if all_refuse and len(kinds) == 1 and isinstance(refused[0], ServerError):
            return refused[0]  # all say the same
        unanswered = {r.server.name: r.late() for r in pending}
        return UnavailableError(self._name, {**unanswered, **self._view.reasons()})

    def _parse(self, request: Request, format: str | None) -> list[Any]:
        """Return the IDs of an answer: exactly the requested number, each once."""
        body, count = request.answer, request.count
        assert isinstance(body, bytes)
        ids: list[Any]
        if format == ARRAY and len(body) == 8 * count:
            return self._parse_array(request, body)
        if format:
            ids = body.decode("ascii", "replace").split("\n")
            if len(ids) != count + 1 or ids.pop() != "" or "" in ids:
                raise request.unusable(f"it is not {count} lines")
        else:
            kind: type[Any]
            if len(body) == 8 * count:
                ids, kind = list(struct.unpack(f">{count}Q", body)), int
            elif len(body) == 16 * count:
                ids, kind = (
                    [uuid.UUID(bytes=body[i : i + 16]) for i in range(0, len(body), 16)],
                    uuid.UUID,
                )
            else:
                has = f"it has {len(body)} bytes"
                raise request.unusable(f"{has}, but {count} IDs have {8 * count} or {16 * count}")
            if self._kind is None:
                self._kind = kind
            elif self._kind is not kind:
                raise request.unusable(
                    f"its IDs have {64 if kind is int else 128} bits and are {kind.__name__}, "
                    f"not {self._kind.__name__}: is this the same sequencer, and the right kind?"
                )
            if kind(int=0) in ids if kind is uuid.UUID else 0 in ids:
                raise request.unusable("it has the ID 0, which is never made")
        if len(set(ids)) < count:
            raise request.unusable("it contains an ID twice")
        self._check_begin(request, ids[0])
        return ids

    def _check_begin(self, request: Request, first: Any) -> None:
        """Check that an answer does not begin like the previous one."""
        if first == self._last:
            raise request.unusable("it begins as the previous one: a cache is in between")
        self._last = first

    def _check_width(self) -> None:
        if self._kind is uuid.UUID:
            raise OptionError(
                f"the IDs of {quote(self._name)} are UUID: an array has IDs of 64 bits"
            )

    def _parse_array(self, request: Request, body: bytes) -> list[Any]:
        """Is _parse without an object for each ID."""
        import numpy

        ids = numpy.frombuffer(body, ">u8").astype("uint64")
        if self._kind is None:
            self._kind = int
        if not ids.all():
            raise request.unusable("it has the ID 0, which is never made")
        # IDs of a layout whose time is not on top come in any order.
        if not (ids[1:] > ids[:-1]).all() and len(numpy.unique(ids)) < len(ids):
            raise request.unusable("it contains an ID twice")
        self._check_begin(request, int(ids[0]))
        return cast("list[Any]", ids)


def _is_number(value: object, kind: type[Any] | tuple[type[Any], ...]) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _no_pickle(value: object) -> TypeError:
    """The error of pickling connections and fetched IDs, which would come twice."""
    return TypeError(f"cannot pickle {type(value).__name__}: make a client in each process")


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", name):
        raise OptionError(
            f"{name!r} is not the name of a sequencer: it has 1 to 128 letters, digits and "
            ". _ - :, and begins with a letter or digit"
        )


def check_count(n: int) -> int:
    count = operator.index(n)
    if count < 1:
        raise OptionError(f"cannot take {n} IDs: ask for 1 or more")
    return count


def _check_token(token: str) -> str:
    """Return a token without white space at its ends, such as the newline of a file."""
    if not isinstance(token, str):
        raise TokenError(f"the token is {type(token).__name__}, not str")
    token = token.strip()
    if not all("!" <= c <= "~" for c in token):
        raise TokenError("the token has a character that tokens do not have, such as a space")
    return token


_checks: dict[int, threading.Lock] = {}  # by process
_clients: weakref.WeakSet[BaseClient] = weakref.WeakSet()


def _after_fork() -> None:
    """Close the parent's connections at once, and not at the first call."""
    for client in list(_clients):
        client._check()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
