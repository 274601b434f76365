"""Clients for unit tests: the same interface, and no server.

    client = firn.testing.FakeClient(clock=lambda: 1782864000.0, node=7)
    assert service_under_test(client.sequencer("orders")) == ...

Equal clocks, nodes and seeds give equal IDs. The IDs of one name increase. The first ID of each
millisecond is odd: from 2026-01-26 on no float holds it, so a test notices rounding.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, cast

from ._client import ARRAY, BaseClient, Client, Sequencer
from .aio import AsyncClient
from .errors import ClosedError, FirnError, OptionError

EPOCH = 1_767_225_600_000  # 2026-01-01, of the layout default, in ms


def _fixed() -> float:
    return 1_782_864_000  # 2026-07-01


class _Fake(BaseClient):
    def __init__(self, clock: Callable[[], float] = _fixed, node: int = 1, seed: int = 1) -> None:
        """Make a client whose IDs depend on nothing else.

        clock: returns the time in seconds since 1970, like time.time. The default
            is always the same time; IDs then count up from it.
        node: the node ID in each ID, from 0 to 1023.
        seed: for the random bits of 128-bit IDs.
        """
        if not 0 <= node < 1024:
            raise OptionError(f"node is {node}: it must be from 0 to 1023")
        super().__init__(["http://fake.invalid"])
        self._now = clock
        self._node = node
        self._seed = seed
        self.error: FirnError | None = None  # what each call raises; None: it gives IDs

    def _make(self, name: str, kind: type[Any] | None) -> Sequencer[Any]:
        return _FakeSequencer(self, name, kind)


class FakeClient(_Fake, Client):
    """A Client without a server. Set error to see what your program does without IDs."""


class AsyncFakeClient(_Fake, AsyncClient):
    """An AsyncClient without a server."""


class _FakeSequencer(Sequencer[Any]):
    def __init__(self, client: _Fake, name: str, kind: type[Any] | None) -> None:
        super().__init__(client, name, kind)
        self._fake = client
        self._random = random.Random(client._seed)
        self._next = 0  # slot: the time in ms, then 12 bits of sequence

    def _take(self, waited: bool) -> tuple[Any, Future[None] | None, bool]:
        self._fake._check()
        return self._fetch(1, None)[0], None, False

    def _fetch(self, count: int, format: str | None) -> list[Any]:
        with self._fake._lock:
            if self._closed:
                raise ClosedError(self.name)
            if self._fake.error is not None:
                raise self._fake.error
            ids = [self._make_id() for _ in range(count)]
        if format is None:
            return ids
        if format == ARRAY:
            import numpy

            return cast("list[Any]", numpy.array(ids, "uint64"))
        if format == "dec":
            return [str(int(id)) for id in ids]
        if format == "hex":
            digits = 32 if self._kind is uuid.UUID else 16
            return [f"{int(id):0{digits}x}" for id in ids]
        raise OptionError(f"format is {format}: a fake has dec and hex")

    def _make_id(self) -> int | uuid.UUID:
        self._next = slot = max(self._next + 1, int(self._fake._now() * 1000) << 12 | 1)
        tick, sequence, node = slot >> 12, slot & 0xFFF, self._fake._node
        if self._kind is uuid.UUID:  # layout uuidv7
            high = tick << 16 | 7 << 12 | sequence
            low = 2 << 62 | node << 46 | self._random.getrandbits(46)
            return uuid.UUID(int=high << 64 | low)
        if not 0 <= tick - EPOCH < 1 << 41:
            raise OptionError(f"clock returns {tick / 1000}: IDs begin in 2026")
        return (tick - EPOCH) << 22 | node << 12 | sequence
