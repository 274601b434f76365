import asyncio
import os

from firn.aio import AsyncClient


async def main() -> None:
    servers = os.environ.get("FIRN_SERVERS", "http://127.0.0.1:3476").split(",")
    async with AsyncClient(servers) as client:
        orders = client.sequencer("orders")
        ids = await asyncio.gather(*(orders.next() for _ in range(100)))
        print(len(set(ids)), "IDs,", len(await orders.take(5)), "more")


asyncio.run(main())
