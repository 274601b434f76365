"""Lets the conformance tests drive this client; they start the servers.

driver.py --servers A,B --sequencer NAME [--token-file F] [--ca FILE] [--wide]
    [--patient] [--timeout S] [--patience S] [--aio]

Reads a command a line, and answers each with a line: ok …, skip or error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import firn
from firn.aio import AsyncClient, AsyncSequencer

ID = int | uuid.UUID
Longest = list[float]


def pack(ids: list[ID]) -> bytes:
    return b"".join(i.to_bytes(8, "big") if isinstance(i, int) else i.bytes for i in ids)


def draw(sequencer: firn.Sequencer[int], n: int) -> tuple[list[ID], float]:
    """Draw n IDs, and return the longest call in seconds too."""
    ids: list[ID] = []
    longest = 0.0
    for _ in range(n):
        start = time.perf_counter()
        ids.append(sequencer.next())
        longest = max(longest, time.perf_counter() - start)
    return ids, longest


def burst(sequencer: firn.Sequencer[int], n: int, threads: int) -> tuple[list[ID], float]:
    results: list[tuple[list[ID], float]] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(draw(sequencer, n))
        except Exception as error:
            errors.append(error)

    all_threads = [threading.Thread(target=run) for _ in range(threads)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    if errors:
        raise errors[0]
    return [i for ids, _ in results for i in ids], max(longest for _, longest in results)


async def burst_aio(sequencer: AsyncSequencer[int], n: int, tasks: int) -> tuple[list[ID], float]:
    ids: list[ID] = []
    longest = 0.0

    async def run() -> None:
        nonlocal longest
        for _ in range(n):
            start = time.perf_counter()
            ids.append(await sequencer.next())
            longest = max(longest, time.perf_counter() - start)

    await asyncio.gather(*(run() for _ in range(tasks)))
    return ids, longest


def fork(sequencer: firn.Sequencer[int], n: int, file: Path) -> None:
    """Fork while threads draw; parent, child and threads write what they have."""
    ids, _ = draw(sequencer, 10)
    stop = threading.Event()
    drawn: list[list[ID]] = [[], []]

    def run(mine: list[ID]) -> None:
        while not stop.is_set():
            mine.append(sequencer.next())

    threads = [threading.Thread(target=run, args=(mine,)) for mine in drawn]
    for thread in threads:
        thread.start()
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            file.with_suffix(".child").write_bytes(pack(draw(sequencer, n)[0]))
            status = 0
        finally:
            os._exit(status)
    ids += draw(sequencer, n)[0]
    stop.set()
    for thread in threads:
        thread.join()
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise RuntimeError(f"the child ended with status {status}")
    data = pack(ids + drawn[0] + drawn[1])
    of_child = file.with_suffix(".child")
    file.write_bytes(data + of_child.read_bytes())
    of_child.unlink()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", required=True)
    parser.add_argument("--sequencer", required=True)
    parser.add_argument("--token-file")
    parser.add_argument("--ca")
    parser.add_argument("--wide", action="store_true")  # the client finds out by itself
    parser.add_argument("--patient", action="store_true")
    parser.add_argument("--timeout", type=float)
    parser.add_argument("--patience", type=float)
    parser.add_argument("--aio", action="store_true")
    args = parser.parse_args()
    token: Callable[[], str] | None = None
    if args.token_file:
        file = Path(args.token_file)

        def token() -> str:
            return file.read_text()

    servers = args.servers.split(",")
    limits: dict[str, Any] = {"timeout": 600.0, "patience": 600.0} if args.patient else {}
    for name in "timeout", "patience":
        if (value := getattr(args, name)) is not None:
            limits[name] = value
    loop = asyncio.new_event_loop()
    client: firn.Client | AsyncClient
    if args.aio:
        client = AsyncClient(servers, token=token, ca=args.ca, **limits)
        tasks = client.sequencer(args.sequencer)

        def take(n: int) -> list[ID]:
            return [*loop.run_until_complete(tasks.take(n))]

        def many(n: int, of: int) -> tuple[list[ID], float]:
            return loop.run_until_complete(burst_aio(tasks, n, of))
    else:
        client = firn.Client(servers, token=token, ca=args.ca, **limits)
        sequencer = client.sequencer(args.sequencer)

        def take(n: int) -> list[ID]:
            return [*sequencer.take(n)]

        def many(n: int, of: int) -> tuple[list[ID], float]:
            return burst(sequencer, n, of)

    for line in sys.stdin:
        command, *words = line.split()
        answer = "ok"
        try:
            if command == "next":
                answer = " ".join(["ok", *map(str, many(int(words[0]), 1)[0])])
            elif command == "take":
                answer = " ".join(["ok", *map(str, take(int(words[0])))])
            elif command == "burst":
                ids, longest = many(int(words[0]), int(words[1]))
                Path(words[2]).write_bytes(pack(ids))
                answer = f"ok {longest * 1000:.3f}"
            elif command == "fork":
                if args.aio or not hasattr(os, "fork"):
                    answer = "skip"
                else:
                    fork(sequencer, int(words[0]), Path(words[1]))
            elif command == "stats":
                states = [
                    {"server": s.server, "failures": s.failures, "error": s.error and str(s.error)}
                    for s in client.servers()
                ]
                answer = "ok " + json.dumps(states)
            elif command == "close":
                if isinstance(client, AsyncClient):
                    loop.run_until_complete(client.close())
                else:
                    client.close()
            else:
                answer = f"error ValueError unknown command {command}"
        except Exception as error:
            answer = f"error {type(error).__name__} " + " ".join(str(error).split())
        print(answer, flush=True)
        if command == "close":
            break


if __name__ == "__main__":
    main()
