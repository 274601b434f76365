from __future__ import annotations

import asyncio
import unittest
import uuid

import firn
from firn.testing import EPOCH, AsyncFakeClient, FakeClient


class Fake(unittest.TestCase):
    def test_ids_of_the_layout(self) -> None:
        now = [EPOCH / 1000 + 2]
        orders = FakeClient(clock=lambda: now[0], node=7).sequencer("orders")
        self.assertEqual(orders.next(), 2000 << 22 | 7 << 12 | 1)
        self.assertEqual(orders.next(), 2000 << 22 | 7 << 12 | 2)
        ids = orders.take(5000)  # more than fit a millisecond
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual({i >> 12 & 1023 for i in ids}, {7})
        now[0] += 10
        self.assertEqual(orders.next(), 12_000 << 22 | 7 << 12 | 1)
        now[0] -= 5
        self.assertEqual(orders.next(), 12_000 << 22 | 7 << 12 | 2)
        self.assertEqual(orders.take(1, "hex"), [f"{12_000 << 22 | 7 << 12 | 3:016x}"])

    def test_no_float_holds_the_first_id(self) -> None:
        first = FakeClient().sequencer("orders").next()
        self.assertNotEqual(int(float(first)), first)
        now = iter(range(1_769_385_600, 3_000_000_000, 86_399))  # from 2026-01-26
        orders = FakeClient(clock=lambda: next(now)).sequencer("orders")
        for id in orders.take(10_000):
            self.assertNotEqual(int(float(id)), id)

    def test_same_interface(self) -> None:
        with FakeClient() as client:
            orders: firn.Sequencer[int] = client.sequencer("orders")
            self.assertIs(orders, client.sequencer("orders"))
            self.assertLess(next(orders), next(iter(orders)))
            with self.assertRaises(firn.OptionError):
                orders.take(0)
            client.error = firn.UnavailableError("orders", {})
            with self.assertRaises(firn.UnavailableError):
                orders.next()
        with self.assertRaises(firn.ClosedError):
            orders.next()

    def test_uuids(self) -> None:
        first = FakeClient(seed=3).sequencer("a", uuid.UUID).take(3)
        again = FakeClient(seed=3).sequencer("a", uuid.UUID).take(3)
        self.assertEqual(first, again)
        self.assertEqual(first, sorted(first))
        self.assertEqual({(i.version, i.variant) for i in first}, {(7, uuid.RFC_4122)})

    def test_asyncio(self) -> None:
        async def main() -> list[int]:
            async with AsyncFakeClient(node=2) as client:
                orders = client.sequencer("orders")
                return [await orders.next(), *await orders.take(2)]

        ids = asyncio.run(main())
        self.assertEqual(ids, [ids[0], ids[0] + 1, ids[0] + 2])


if __name__ == "__main__":
    unittest.main()
