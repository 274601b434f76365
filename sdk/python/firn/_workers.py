"""Daemon threads that run the requests: they never keep a program alive."""

from __future__ import annotations

import _thread
import queue
import threading
from collections.abc import Callable

LINGER = 10.0  # seconds that a thread waits for more work


class Workers:
    """Runs functions in threads. A thread that has nothing to do ends after a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle = 0  # waiting threads for which no function is in the queue
        self._closed = False
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def run(self, function: Callable[[], None]) -> None:
        """Run a function that does not raise. If no thread can start, run it now."""
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
                self._queue.put(function)
                return
        try:
            # Unlike Thread.start, it needs no lock of the module threading, which a
            # thread of the parent may hold for ever in a child that C code forked.
            _thread.start_new_thread(self._serve, (function,))
        except RuntimeError:  # the interpreter is shutting down, or a limit is reached
            function()

    def close(self) -> None:
        """End threads that have nothing to do, and others once they are done."""
        with self._lock:
            self._closed = True
            for _ in range(self._idle):
                self._queue.put(None)
            self._idle = 0

    def _serve(self, function: Callable[[], None] | None) -> None:
        while function is not None:
            function()
            function = None  # keeps nothing alive while it waits
            with self._lock:
                if self._closed:
                    return
                self._idle += 1
            try:
                function = self._queue.get(timeout=LINGER)
            except queue.Empty:
                with self._lock:
                    if self._idle > 0:
                        self._idle -= 1
                        return
                function = self._queue.get()  # it came at the last moment
