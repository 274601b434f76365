#!/bin/sh
# py-xid: two processes that are forked after the first ID make the same IDs,
# though an xid holds the process ID.
#
# Packages: py-xid 1.0.0; pymongo 4.20.1 for its ObjectId (PyPI).
# Guess: machine, process ID and a counter make an xid unique across processes;
#   forked workers have process IDs of their own.
# Behaviour: the process ID is read when the package is imported. Once the
#   parent has made an ID, each child makes the parent's next ones: same process
#   ID, same counter, and the same time within the second. An ObjectId, made of
#   the same parts, does not repeat. A server that loads the application and
#   then forks its workers does this, and multiprocessing with fork.
# Seen 2026-11-30: the first three IDs of two children are equal, apart from the
#   time, and have the parent's process ID.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check py-xid==1.0.0 pymongo==4.20.1

cat >main.py <<'EOF'
import os

from bson import ObjectId
from xid import XID


def child(new):
    """Returns three IDs of a forked process, without the time."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        for _ in range(3):
            os.write(write, new()[4:])
        os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    return os.read(read, 100)


for name, new in (("ObjectId", lambda: ObjectId().binary), ("XID", lambda: XID().bytes())):
    new()
    one, other = child(new), child(new)
    print(f"{name}: the IDs of two children are equal: {one == other}")
print("process ID in them is the parent's:", one[3:5] == (os.getpid() & 0xFFFF).to_bytes(2, "big"))
EOF
cat >want <<'EOF'
ObjectId: the IDs of two children are equal: False
XID: the IDs of two children are equal: True
process ID in them is the parent's: True
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "py-xid-repeats-in-forked-processes: no longer holds" >&2; exit 1; }
