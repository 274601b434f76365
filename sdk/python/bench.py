"""Compares next() of a warm sequencer with itertools.count behind a lock.

PYTHONPATH=. python3 bench.py http://127.0.0.1:3476
"""

from __future__ import annotations

import itertools
import sys
import threading
import timeit
from collections.abc import Callable

import firn

CALLS = 40_000

with firn.Client([sys.argv[1]], batch=100_000, max_batch=100_000) as client:
    orders = client.sequencer("orders")
    lock, count = threading.Lock(), itertools.count()

    def locked() -> int:
        with lock:
            return next(count)

    def best(function: Callable[[], int]) -> float:
        times = []
        for _ in range(7):
            while sum(map(len, [orders._block, *orders._segments])) < CALLS or orders._fetching:
                orders.next()  # fetch before the measurement, not in it
            times.append(timeit.timeit(function, number=CALLS) / CALLS * 1e9)
        return min(times)

    print(f"next {best(orders.next):.0f} ns, itertools.count with a lock {best(locked):.0f} ns")
