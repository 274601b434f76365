#!/bin/sh
# fasteners: a second InterProcessLock of a process acquires too, and its
# release lets other processes in.
#
# Package: fasteners 0.20 (PyPI), on Linux.
# Guess: while one object holds the lock of a file, another object, in whatever
#   thread or process, does not get it. Releasing an object releases what this
#   object holds.
# Behaviour: the lock is one of fcntl, which belongs to the process. A second
#   object of the process acquires at once, and when it releases, the process
#   holds nothing any more: another process gets the lock, while the first
#   object still says that it has it. InterProcessReaderWriterLock does the
#   same. Two threads with an object each do not wait for each other.
# Seen 2026-11-30: as said; with one object, the other process is refused.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check fasteners==0.20

cat >other.py <<'EOF'
import fasteners

print(fasteners.InterProcessLock("lock").acquire(blocking=False))
EOF
cat >main.py <<'EOF'
import subprocess
import sys

import fasteners


def other_process():
    return subprocess.run([sys.executable, "other.py"], capture_output=True, text=True).stdout.strip()


first, second = fasteners.InterProcessLock("lock"), fasteners.InterProcessLock("lock")
print("first object acquires:", first.acquire(blocking=False))
print("another process acquires:", other_process())
print("second object acquires:", second.acquire(blocking=False))
second.release()
print("second object has released; another process acquires:", other_process())
print("first object says that it has the lock:", first.acquired)

first, second = (fasteners.InterProcessReaderWriterLock("rw") for _ in range(2))
print("two write locks:", first.acquire_write_lock(blocking=False), second.acquire_write_lock(blocking=False))
EOF
cat >want <<'EOF'
first object acquires: True
another process acquires: False
second object acquires: True
second object has released; another process acquires: True
first object says that it has the lock: True
two write locks: True True
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "fasteners-second-lock-of-a-process-ends-the-first: no longer holds" >&2; exit 1; }
