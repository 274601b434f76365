"""Which server to ask: the state of each, and what a call has tried."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import SystemRandom

from ._transport import Server
from .errors import FirnError, ServerError

SHORTEST_PAUSE = 0.25  # about what a server takes to start
LONGEST_PAUSE = 10.0
LONGEST_WISH = 300.0  # from a Retry-After
SLOW = 0.2  # seconds without an answer until another server is asked

random = SystemRandom()  # has no state that a fork would copy


@dataclass
class Health:
    """The state of a server, as a whole or for one sequencer.

    A server whose last request failed, or took long, is a suspect: while another
    one works, calls do not wait for it, and only probes are sent to it.
    """

    failures: int = 0  # since it last worked
    failed: float = 0.0  # when it last failed
    until: float = 0.0  # it is not used before
    probe: float = 0.0  # no probe is sent before
    asked: bool = False  # the server asked for the pause
    error: FirnError | None = None  # why it is a suspect

    def fail(self, start: float, error: FirnError) -> None:
        """Note the failure of a request that began at start."""
        now = time.monotonic()
        if self.failures == 0 or start >= self.failed:  # concurrent ones count once
            self.failures += 1
            self.failed = now
            self.asked = False
            pause = min(SHORTEST_PAUSE * 2 ** min(self.failures - 1, 20), LONGEST_PAUSE)
            self.until = now + pause * random.uniform(0.5, 1)
        if isinstance(error, ServerError) and error.retry_after > 0:
            wish = min(error.retry_after, LONGEST_WISH)
            self.asked = True
            self.until = now + wish * random.uniform(1, 1.1)
        self.suspect(start, error)

    def suspect(self, start: float, error: FirnError, failed: bool = True) -> None:
        """The next probe waits at least as long as the request took.

        A request that only takes long does not hide why the previous one failed.
        """
        now = time.monotonic()
        pause = max(self.until - now, now - start, SHORTEST_PAUSE * random.uniform(0.5, 1))
        self.probe = now + pause
        if failed or self.failures == 0:
            self.error = error


@dataclass(frozen=True)
class ServerStatus:
    """The state of a server for a client."""

    server: str
    failures: int  # since it last worked
    left_out: float  # seconds for which it is asked only if no other server works
    error: FirnError | None  # why calls do not wait for it; None if they do


@dataclass
class Call:
    """What one call has tried."""

    count: int
    tried: set[Server] = field(default_factory=set)
    refused: dict[Server, FirnError] = field(default_factory=dict)
    refusal: ServerError | None = None  # of the request itself


class Roster:
    """The servers of a client. Its methods may be called by any thread."""

    def __init__(self, servers: Sequence[Server], timeout: float) -> None:
        self.servers = servers
        self._timeout = timeout
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._health = {server: Health() for server in self.servers}

    def view(self) -> View:
        return View(self)

    def status(self) -> list[ServerStatus]:
        now = time.monotonic()
        with self._lock:
            return [
                ServerStatus(s.name, h.failures, max(0.0, h.until - now), h.error)
                for s, h in self._health.items()
            ]


class View:
    """The servers as one sequencer sees them."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._timeout = roster._timeout
        self._lock = roster._lock
        self._whole = roster._health
        self._own = {server: Health() for server in roster.servers}
        self._usual = 0.0  # how long an answer takes, a moving average
        self._limited = 0.0  # until when no server is asked, after one has answered 429

    def pick(self, call: Call, pending: set[Server]) -> tuple[Server | None, list[Server], float]:
        """Choose a random server that is not a suspect, and the suspects to probe beside it.

        If all are suspects, choose one that is not left out, or else the one that
        returns first and has not asked for the pause. Otherwise, or if the client is
        limited, return None and the time until a server is available, 0 if none will be.
        """
        with self._lock:
            now = time.monotonic()
            if self._limited > now:
                return None, [], self._limited - now
            good, fit, resort, probes = [], [], [], []
            soonest = 0.0
            for server in self._roster.servers:
                if server in pending or server in call.refused:
                    continue
                whole, own = self._whole[server], self._own[server]
                if whole.error is None and own.error is None:
                    good.append(server)
                    continue
                if now > whole.probe and now > own.probe:
                    probes.append(server)
                until = max(whole.until, own.until)
                if until <= now:
                    fit.append(server)
                    continue
                asked = any(h.asked and h.until > now for h in (whole, own))
                if server not in call.tried and not asked:
                    resort.append((until, server))
                soonest = min(soonest or until, until)
            if good:
                for server in probes:  # no other one before this one has ended
                    self._whole[server].probe = now + self._timeout
                    self._own[server].probe = now + self._timeout
                return random.choice(good), probes, 0.0
            if fit:
                return random.choice(fit), [], 0.0
            if resort:
                return min(resort, key=lambda r: r[0])[1], [], 0.0
            return None, [], soonest and soonest - now

    def hedge_after(self) -> float:
        """How long a request may take before another server is asked too."""
        return max(SLOW, 2 * self._usual)

    def worked(self, server: Server, start: float, probe: bool, late: FirnError) -> bool:
        """Note an answer, and return whether the server had failed before."""
        with self._lock:
            had = bool(self._whole[server].failures or self._own[server].failures)
            took, after = time.monotonic() - start, self.hedge_after()
            self._whole[server], self._own[server] = Health(), Health()
            self._limited = 0.0
            if took >= after:  # it was probably stopped
                self._suspect(server, start, late)
            if not probe:
                self._usual += (min(took, 2 * after) - self._usual) / 8
            return had

    def failed(self, server: Server, start: float, whole: bool, error: FirnError) -> bool:
        """Note a failure, and return whether it is the first since the server worked."""
        with self._lock:
            own = self._own[server]
            health = self._whole[server] if whole else own
            first = health.failures == 0
            health.fail(start, error)
            if isinstance(error, ServerError) and error.status == 429:
                self._limited = max(self._limited, health.until)
            if own.error is not None:
                own.suspect(start, error)
            return first

    def late(self, server: Server, start: float, error: FirnError) -> None:
        """Make a server a suspect if a request that began at start takes long."""
        with self._lock:
            if time.monotonic() - start >= self.hedge_after():
                self._suspect(server, start, error)

    def _suspect(self, server: Server, start: float, error: FirnError) -> None:
        # It may answer other sequencers, so it must also answer one of this.
        self._whole[server].suspect(start, error, False)
        self._own[server].suspect(start, error, False)

    def reasons(self) -> dict[str, FirnError]:
        """The last failure of each server."""
        with self._lock:
            found = {}
            for server in self._roster.servers:
                whole, own = self._whole[server], self._own[server]
                late = own.error is not None and own.failed > whole.failed
                error = own.error if late else whole.error or own.error
                if error is not None:
                    found[server.name] = error
            return found
