"""Clients for Python: python.py CLIENT PORT."""

import asyncio, inspect, os, sys, time

client, port = sys.argv[1], int(sys.argv[2])


async def run(do, incr):
    async def get(value):
        return await value if inspect.isawaitable(value) else value

    def text(value):
        return value.decode() if isinstance(value, bytes) else str(value)

    time.sleep(float(os.environ["SILENT"]))
    print("next", text(await get(do("NEXT", "orders"))))
    print("three", *(text(i) for i in await get(do("NEXT", "orders", "3"))))
    for _ in range(100):
        print("incr", await get(incr("orders")))


async def main():
    if client == "redis-py":
        import redis

        r = redis.Redis(port=port)
        await run(r.execute_command, r.incr)
    elif client == "redis-py-asyncio":
        import redis.asyncio

        r = redis.asyncio.Redis(port=port)
        await run(r.execute_command, r.incr)
        await r.aclose()
    elif client == "redis-py-2":
        import redis

        r = redis.Redis(port=port, protocol=2)
        await run(r.execute_command, r.incr)
    elif client == "redis-py-cache":
        import redis
        from redis.cache import CacheConfig

        r = redis.Redis(port=port, protocol=3, cache_config=CacheConfig())
        await run(r.execute_command, r.incr)
    elif client == "redis-py-cluster":
        import redis

        redis.RedisCluster(host="127.0.0.1", port=port)
    elif client == "redis-py-sentinel":
        import redis

        redis.Sentinel([("127.0.0.1", port)]).master_for("m").ping()
    elif client == "valkey-py":
        import valkey

        r = valkey.Valkey(port=port)
        await run(r.execute_command, r.incr)
    elif client == "coredis":
        import coredis

        async with coredis.Redis(port=port, decode_responses=True) as r:
            await run(
                lambda *a: r.create_request(a[0].encode(), *a[1:], callback=lambda v, **_: v),
                r.incr,
            )
    elif client == "glide":
        import glide

        r = await glide.GlideClient.create(
            glide.GlideClientConfiguration([glide.NodeAddress("127.0.0.1", port)])
        )
        await run(lambda *a: r.custom_command(list(a)), r.incr)
        await r.close()
    elif client == "glide-sync":
        import glide_sync

        r = glide_sync.GlideClient.create(
            glide_sync.GlideClientConfiguration([glide_sync.NodeAddress("127.0.0.1", port)])
        )
        await run(lambda *a: r.custom_command(list(a)), r.incr)


try:
    asyncio.run(main())
except Exception as e:
    print("error", type(e).__name__, e)
