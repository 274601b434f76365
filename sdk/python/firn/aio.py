"""The client for asyncio: the same as firn.Client, with methods to await.

    async with AsyncClient(["http://127.0.0.1:3476"]) as client:
        orders = client.sequencer("orders")
        id = await orders.next()

Requests run in background threads, so a busy event loop does not delay them,
and a client may be used by several loops. A cancelled task does not cancel the
request that other tasks wait for.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
import uuid
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from ._client import BaseClient, Sequencer, _clock
from .errors import FirnError, UnavailableError

if TYPE_CHECKING:
    import numpy

T = TypeVar("T", bound="int | uuid.UUID")
C = TypeVar("C", bound="AsyncClient")


class AsyncSequencer(Generic[T]):
    """A Sequencer for asyncio. All tasks share its fetched IDs."""

    def __init__(self, sequencer: Sequencer[T]) -> None:
        self._sequencer = sequencer

    @property
    def name(self) -> str:
        return self._sequencer.name

    async def next(self) -> T:
        """Return the next ID. See Sequencer.next."""
        block = self._sequencer._block
        try:
            id: T = block.pop()
        except IndexError:
            pass
        else:
            if block.page[0] and _clock() < block.deadline:
                return id
        return await self._wait()

    async def _wait(self) -> T:
        _check_loop()
        sequencer = self._sequencer
        end = time.monotonic() + sequencer._client._patience
        waited = False
        while True:
            id, fetch, began = sequencer._take(waited)
            if fetch is None:
                return cast(T, id)
            error: FirnError | None = None
            try:
                # A fetch of this call ends in time, and says more.
                timeout = None if began else end - time.monotonic()
                await asyncio.wait_for(asyncio.wrap_future(fetch), timeout)
            except asyncio.TimeoutError:
                raise UnavailableError(sequencer.name, sequencer._view.reasons()) from None
            except FirnError as caught:
                error = caught
            if error is not None and (began or waited):
                raise error
            waited = True

    def __aiter__(self) -> AsyncIterator[T]:
        """All IDs to come, without an end."""
        return self

    async def __anext__(self) -> T:
        return await self.next()

    @overload
    async def take(self, n: int) -> list[T]: ...
    @overload
    async def take(self, n: int, format: str) -> list[str]: ...

    async def take(self, n: int, format: str | None = None) -> list[T] | list[str]:
        """Return n new IDs. See Sequencer.take."""
        take: Any = self._sequencer.take
        return cast("list[T] | list[str]", await self._run(take, n, format))

    async def array(self, n: int, dtype: str = "int64") -> numpy.ndarray[Any, Any]:
        """Return n new IDs as a NumPy array. See Sequencer.array."""
        found: numpy.ndarray[Any, Any] = await self._run(self._sequencer.array, n, dtype)
        return found

    async def _run(self, call: Callable[..., Any], *args: Any) -> Any:
        """Run a call in a thread."""
        _check_loop()
        result: concurrent.futures.Future[Any] = concurrent.futures.Future()
        result.set_running_or_notify_cancel()

        def run() -> None:
            try:
                found = call(*args)
            except BaseException as error:
                result.set_exception(error)
            else:
                result.set_result(found)

        client = self._sequencer._client
        client._check()
        client._workers.run(run)
        return await asyncio.wrap_future(result)

    def close(self) -> None:
        self._sequencer.close()


def _check_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise FirnError(
            "AsyncClient needs asyncio, whose event loop is not running here: "
            "in trio, use firn.Client and await trio.to_thread.run_sync(orders.next)"
        ) from None


class AsyncClient(BaseClient):
    """A Client for asyncio. It belongs to no event loop."""

    @overload
    def sequencer(self, name: str) -> AsyncSequencer[int]: ...
    @overload
    def sequencer(self, name: str, kind: type[T]) -> AsyncSequencer[T]: ...

    def sequencer(self, name: str, kind: type[Any] | None = None) -> AsyncSequencer[Any]:
        """Return the sequencer of this name. See Client.sequencer."""
        return AsyncSequencer(self._sequencer(name, kind))

    async def close(self) -> None:
        """End all requests and connections. Waiting calls fail."""
        self._close()

    async def __aenter__(self: C) -> C:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()
