from __future__ import annotations

import asyncio
import unittest

from servers import FakeServer, eventually, problem

import firn
from firn.aio import AsyncClient


class Aio(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.server = FakeServer()
        self.addCleanup(self.server.close)

    async def test_next_take_and_iteration(self) -> None:
        async with AsyncClient([self.server.url]) as client:
            orders = client.sequencer("orders")
            ids = [await orders.next() for _ in range(1000)]
            self.assertEqual(ids, sorted(set(ids)))
            self.assertEqual(len(await orders.take(5)), 5)
            async for id in orders:
                self.assertGreater(id, ids[-1])
                break
        with self.assertRaises(firn.ClosedError):
            await orders.next()

    async def test_tasks_share_one_request(self) -> None:
        self.server.hung.set()
        async with AsyncClient([self.server.url], batch=1000) as client:
            orders = client.sequencer("orders")
            tasks = [asyncio.create_task(orders.next()) for _ in range(50)]
            while not self.server.counts:
                await asyncio.sleep(0.001)
            tasks[0].cancel()  # ends only this one
            await asyncio.sleep(0)
            self.server.hung.clear()
            self.server.resume.set()
            ids = await asyncio.gather(*tasks, return_exceptions=True)
            self.assertIsInstance(ids[0], asyncio.CancelledError)
            self.assertEqual(len(set(ids[1:])), 49)
            self.assertEqual(self.server.counts, [1000])

    async def test_errors(self) -> None:
        self.server.answer = lambda n: problem("404 Not Found", "no-sequencer", "not found")
        async with AsyncClient([self.server.url]) as client:
            for call in (client.sequencer("orders").next(), client.sequencer("orders").take(1)):
                with self.assertRaisesRegex(firn.ServerError, "no-sequencer"):
                    await call
            with self.assertRaises(firn.OptionError):
                await client.sequencer("orders").take(0)

    async def test_close_ends_waiting_tasks(self) -> None:
        self.server.hung.set()
        client = AsyncClient([self.server.url])
        task = asyncio.create_task(client.sequencer("orders").next())
        while not self.server.counts:
            await asyncio.sleep(0.001)
        await client.close()
        with self.assertRaises(firn.ClosedError):
            await task

    async def test_other_loops(self) -> None:
        client = AsyncClient([self.server.url])
        orders = client.sequencer("orders")
        first = await orders.next()
        loop = asyncio.new_event_loop()
        try:
            other = await asyncio.to_thread(loop.run_until_complete, orders.next())
        finally:
            loop.close()
        self.assertEqual(other, first + 1)
        await client.close()
        self.assertTrue(eventually(lambda: client._workers._idle == 0))

    def test_without_asyncio(self) -> None:
        orders = AsyncClient([self.server.url]).sequencer("orders")
        for call in orders.next(), orders.take(2), orders.array(2):
            with self.assertRaisesRegex(firn.FirnError, "needs asyncio.* in trio, use firn.Client"):
                call.send(None)  # as trio does
        self.assertEqual(self.server.counts, [])


if __name__ == "__main__":
    unittest.main()
