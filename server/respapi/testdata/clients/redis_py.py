# Uses redis-py as its documentation does: python redis_py.py PORT.
import sys

import redis

for protocol in (2, 3):
    r = redis.Redis(port=int(sys.argv[1]), protocol=protocol, decode_responses=True, client_name="test")
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
    try:
        r.execute_command("NEXT", "a/b")
        raise SystemExit("a/b was taken for a name")
    except redis.ResponseError as e:
        assert "a name has 1 to 128 characters" in str(e), e
    try:
        r.set("a", "b")
        raise SystemExit("SET was answered")
    except redis.ResponseError as e:
        assert "unknown command 'SET'" in str(e), e
    r.close()

raw = redis.Redis(port=int(sys.argv[1]))
packed = raw.execute_command("NEXTB", "orders", 100000)
ids = [int.from_bytes(packed[i : i + 8], "big") for i in range(0, len(packed), 8)]
assert len(ids) == 100000 and ids == sorted(set(ids))
print("ok redis-py", redis.__version__)
