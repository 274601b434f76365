# Uses redis-py as its documentation does: python redis_py.py PORT.
import asyncio
import sys

import redis
import redis.asyncio


def fails(call, text):
    """Checks that a call fails with a text."""
    try:
        call()
    except redis.ResponseError as e:
        assert text in str(e), e
    else:
        raise SystemExit("there is no error: " + text)


for protocol in (2, 3):
    r = redis.Redis(host="localhost", port=int(sys.argv[1]), protocol=protocol, decode_responses=True, client_name="test")
    assert r.ping() is True
    one = r.execute_command("NEXT", "orders")
    assert isinstance(one, str) and one.isdigit(), one
    three = r.execute_command("NEXT", "orders", 3)
    assert len(three) == 3 and int(one) < int(three[0]) < int(three[1]) < int(three[2]), three
    assert r.execute_command("INCR", "orders") > int(three[2])
    pipe = r.pipeline(transaction=False)
    for _ in range(1000):
        pipe.execute_command("NEXT", "orders")
    many = [int(s) for s in pipe.execute()]
    assert many == sorted(set(many)) and len(many) == 1000
    assert r.info()["redis_version"] and "firn_version" in r.info("server")
    reading = r.execute_command("INSPECT", one)
    if protocol == 2:
        reading = dict(zip(reading[::2], reading[1::2]))
    assert reading["dec"] == one and reading["layout"] == "default", reading
    assert r.client_getname() == "test"
    assert r.client_id() > 0
    fails(lambda: r.execute_command("NEXT", "a/b"), "a name has 1 to 128 characters")
    fails(lambda: r.set("a", "b"), "unknown command 'SET'")

    # Its own methods: incr sends INCRBY name 1, and pipeline() is MULTI and EXEC.
    ids = [r.incr("orders"), r.incrby("orders"), r.incr("orders")]
    assert ids == sorted(set(ids)), ids
    fails(lambda: r.incr("orders", 5), "NEXT orders 5")
    fails(lambda: r.decr("orders"), "unknown command 'DECRBY'")
    pipe = r.pipeline()
    for _ in range(1000):
        pipe.incr("orders")
    many = pipe.execute()
    assert many == sorted(set(many)) and len(many) == 1000 and many[0] > ids[2]
    fails(lambda: r.pipeline().incr("orders").incr("orders", 5).execute(), "NEXT orders 5")
    assert r.transaction(lambda p: p.incr("orders"))[0] > many[-1]
    assert r.role()[0] == "master"
    assert r.client_info()["name"] == "test" and r.client_info()["lib-name"].startswith("redis-py")
    assert "next" in r.command() and "next" in r.command_list() and r.command_count() > 15
    assert r.info("replication")["role"] == "master" and r.info("all")["loading"] == 0
    r.close()

raw = redis.Redis(port=int(sys.argv[1]))
packed = raw.execute_command("NEXTB", "orders", 100000)
ids = [int.from_bytes(packed[i : i + 8], "big") for i in range(0, len(packed), 8)]
assert len(ids) == 100000 and ids == sorted(set(ids))


async def in_asyncio():
    r = redis.asyncio.Redis(port=int(sys.argv[1]))
    async with r.pipeline() as pipe:
        one, two = await pipe.incr("orders").incr("orders").execute()
    assert one < two < await r.incr("orders")
    await r.aclose()


asyncio.run(in_asyncio())
print("ok redis-py", redis.__version__)
