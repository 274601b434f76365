#!/bin/sh
# python-redis-lock with redis-py 8: a waiter does not get a lock that has
# expired.
#
# Packages: python-redis-lock 4.0.1, redis 8.1.0 (PyPI), redis-server
#   5:7.0.15-1~deb12u10 (Debian 12, unpacked in a temp folder).
# Guess: the holder is gone, the lock expires after 8 s, and the waiter has it
#   at most one try later.
# Behaviour: the waiter sleeps in BLPOP for the expiry time of the lock, and
#   looks at the lock only afterwards. redis-py 8 has a socket timeout of 5 s
#   by default, which ends the BLPOP, and repeats the command: with an expiry
#   above 5 s the look at the lock does not come while it retries. With
#   socket_timeout=None it does.
# Seen 2026-11-28: 8 s after the expiry the key is gone and the waiter still
#   waits; with socket_timeout=None it has the lock.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check python-redis-lock==4.0.1 redis==8.1.0
apt-get -q download redis-server=5:7.0.15-1~deb12u10 redis-tools=5:7.0.15-1~deb12u10 >apt.log 2>&1
for deb in *.deb; do dpkg -x "$deb" root; done

cat >main.py <<'EOF'
import atexit, os, socket, subprocess, threading, time
import redis, redis_lock

with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
server = subprocess.Popen(["root/usr/bin/redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", ""],
                          stdout=subprocess.DEVNULL)
atexit.register(server.kill)
direct = redis.Redis(port=port, socket_timeout=None)
while True:
    try:
        direct.ping()
        break
    except redis.ConnectionError:
        time.sleep(0.1)
got = {"default": False, "socket_timeout=None": False}

def wait(name, **options):
    got[name] = redis_lock.Lock(redis.Redis(port=port, **options), name, expire=8).acquire()

for name in got:
    redis_lock.Lock(direct, name, expire=8).acquire()
threading.Thread(target=wait, args=("default",), daemon=True).start()
threading.Thread(target=wait, args=("socket_timeout=None",), kwargs={"socket_timeout": None}, daemon=True).start()
time.sleep(16)
for name in got:
    held = direct.exists("lock:" + name)
    print(name, "| key in Redis:", "of the waiter" if got[name] else held, "| waiter has the lock:", got[name], flush=True)
server.kill()
os._exit(0)
EOF
cat >want <<'EOF'
default | key in Redis: 0 | waiter has the lock: False
socket_timeout=None | key in Redis: of the waiter | waiter has the lock: True
EOF

timeout 50 v/bin/python main.py >got
cat got
diff want got >&2 || { echo "python-redis-lock-misses-an-expired-lock-with-redis-py-8: no longer holds" >&2; exit 1; }
