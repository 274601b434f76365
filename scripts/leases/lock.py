"""Holds a lock of redis-py, or waits for one."""

import sys
import time

import redis

name, who, address, key = sys.argv[1:5]
host, port = address.split(":")
options = {"socket_timeout": 2} if name == "redis-py-2s" else {}
lock = redis.Redis(host, int(port), **options).lock(key, timeout=10)
lock.acquire()
print("HAVE", flush=True)
while True:
    time.sleep(3)
    try:
        lock.reacquire()
    except Exception as error:
        print("TOLD", type(error).__name__, error, flush=True)
        break
time.sleep(1000)
