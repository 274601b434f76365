"""Measures when the holder of a lost lock is notified: see leases.sh, which starts this.

The holder reaches its store through a proxy; a second process waits for the lock, directly. C: the
proxy stops forwarding, both ways, without closing anything, and later forwards what it kept. S: the
holder is stopped (SIGSTOP), and continues once the second process has the lock.
"""

import concurrent.futures
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

CUT, AFTER = 100, 20  # seconds: how long the proxy is cut at most, and what is watched afterwards
GO, PYTHON, NODE = (
    ["./go/leases"],
    ["venv/bin/python", "lock.py"],
    ["js/node_modules/.bin/node", "js/lock.mjs"],
)
JAVA = ["java", "-XX:TieredStopAtLevel=1", "-Xmx200m", "-cp", "java/lib/*:java/classes", "Lock"]
FIRN = ["sh", "firn.sh"]
CASES = {
    "firn": ("etcd", FIRN),
    "etcd": ("etcd", GO), "etcd-5": ("etcd", GO),
    "client-go": ("kube", GO), "client-go-release": ("kube", GO),
    "redsync": ("redis", GO), "redislock": ("redis", GO),
    "redis-py": ("redis", PYTHON), "redis-py-2s": ("redis", PYTHON),
    "redlock": ("redis", NODE), "redlock-1s": ("redis", NODE),
    "bullmq": ("redis", NODE), "pg-boss": ("postgres", NODE),
    "redisson": ("redis", JAVA), "redisson-asks": ("redis", JAVA),
    "shedlock": ("postgres", JAVA), "curator": ("zookeeper", JAVA),
}  # fmt: skip
children: list[subprocess.Popen] = []


class Proxy:
    """Forwards connections to a port until cut is set, and keeps what arrives until it is cleared."""

    def __init__(self, target: int) -> None:
        self.target, self.open = target, threading.Event()
        self.open.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.connect, args=(client,), daemon=True).start()

    def connect(self, client: socket.socket) -> None:
        self.open.wait()
        server = socket.create_connection(("127.0.0.1", self.target))
        for a, b in ((client, server), (server, client)):
            a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, a: socket.socket, b: socket.socket) -> None:
        try:
            while data := a.recv(65536):
                self.open.wait()
                b.sendall(data)
        except OSError:
            pass
        self.open.wait()
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Program:
    """A process whose lines are kept with the time at which they came."""

    def __init__(self, *words: str) -> None:
        self.lines: list[tuple[float, str]] = []
        self.log = open(f"log-{words[-4]}-{words[-3]}-{words[-1]}", "w")
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.log, text=True)
        children.append(self.process)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in self.process.stdout:
            self.lines.append((time.time(), line.strip()))
        self.lines.append((time.time(), f"ENDED {self.process.wait()}"))

    def when(self, word: str, since: float = 0) -> float | None:
        return next(
            (t for t, line in list(self.lines) if line.startswith(word) and t >= since), None
        )

    def wait(self, word: str, limit: float, since: float = 0) -> float | None:
        end = time.time() + limit
        while (t := self.when(word, since)) is None and time.time() < end:
            time.sleep(0.01)
        return t


def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def start(*words: str, **options: object) -> None:
    with open(f"log-{os.path.basename(words[0])}", "w") as log:
        children.append(subprocess.Popen(words, stdout=log, stderr=log, **options))


def etcd() -> int:
    client, peer = port(), f"http://127.0.0.1:{port()}"
    url = f"http://127.0.0.1:{client}"
    start(
        os.environ["ETCD"], "--data-dir", f"etcd-{client}", "--listen-client-urls", url, "--advertise-client-urls", url,
        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
    )  # fmt: skip
    return client


def kube() -> int:
    store, own = etcd(), port()
    subprocess.run(
        ["openssl", "genrsa", "-out", "sa.key", "2048"], check=True, stderr=subprocess.DEVNULL
    )
    with open("tokens.csv", "w") as f:
        f.write('leases,admin,1,"system:masters"\n')
    start(
        os.environ["KUBE"], "--etcd-servers", f"http://127.0.0.1:{store}", "--secure-port", str(own),
        "--bind-address", "127.0.0.1", "--cert-dir", "certs", "--service-account-issuer", "https://leases",
        "--service-account-key-file", "sa.key", "--service-account-signing-key-file", "sa.key", "--api-audiences", "api",
        "--authorization-mode", "RBAC", "--token-auth-file", "tokens.csv", "--service-cluster-ip-range", "10.0.0.0/24",
    )  # fmt: skip
    return own


def redis() -> int:
    own = port()
    start("redis-server", "--port", str(own), "--bind", "127.0.0.1", "--save", "")
    return own


def postgres() -> int:
    own, user = port(), {"user": "postgres"} if os.getuid() == 0 else {}
    os.makedirs("pg")
    if user:
        shutil.chown("pg", "postgres")
    subprocess.run(
        [f"{os.environ['PGBIN']}/initdb", "-D", "pg", "-A", "trust", "-U", "postgres"],
        check=True, stdout=subprocess.DEVNULL, **user,
    )  # fmt: skip
    start(
        f"{os.environ['PGBIN']}/postgres",
        "-D",
        "pg",
        "-p",
        str(own),
        "-k",
        "",
        "-c",
        "listen_addresses=127.0.0.1",
        **user,
    )
    return own


def zookeeper() -> int:
    own = port()
    Program(*JAVA, "zookeeper", "server", f"127.0.0.1:{own}", "").wait("READY", 60)
    return own


def seconds(t: float | None, since: float) -> str:
    return "never" if t is None else f"{t - since:.1f}"


def measure(name: str, how: str, target: int, program: list[str]) -> str:
    proxy, key = Proxy(target), f"{name}-{how.lower()}"
    holder = Program(*program, name, "holder", f"127.0.0.1:{proxy.port}", key)
    if holder.wait("HAVE", 120) is None:
        return f"{name:18} {how}  NOT RUN: {holder.lines[-1:]}"
    second = Program(*program, name, "second", f"127.0.0.1:{target}", key)
    time.sleep(8)  # until it waits, and the holder has renewed
    if second.when("HAVE") or holder.when("TOLD"):
        return f"{name:18} {how}  NOT RUN: lost before the cut {second.lines} {holder.lines}"
    begun = time.time()
    if how == "C":
        proxy.open.clear()
        got = second.wait("HAVE", CUT)
        told = holder.wait("TOLD", max(0, begun + CUT - time.time()))
        proxy.open.set()
    else:
        have = next(line for _, line in holder.lines if line.startswith("HAVE"))
        pids = [holder.process.pid, *map(int, have.split()[1:])]  # with the program that Firn runs
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        got = second.wait("HAVE", CUT)
        time.sleep(2)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        told = None
    back = time.time()
    told = told or holder.wait("TOLD", AFTER) or holder.when("ENDED")
    time.sleep(1)
    for p in (holder, second):
        p.process.terminate()  # not SIGKILL: Firn ends what it runs
    if got is None:
        overlap = "?"
    elif told is None:
        overlap = f"> {time.time() - got:.1f}"
    else:
        overlap = f"{told - got:.1f}" if told > got else "none"
    said = [
        f"{t - begun:.1f} {line[:110]}"
        for t, line in holder.lines
        if t > begun and not line.startswith("ENDED")
    ]
    return (
        f"{name:18} {how}  second has it {seconds(got, begun):>6}  back {back - begun:6.1f}  "
        f"holder told {seconds(told, begun):>6}  overlap {overlap:>7}  {said[:3]}"
    )


def main() -> None:
    wanted = sys.argv[1:] or list(CASES)
    stores = {s: globals()[s]() for s in dict.fromkeys(CASES[name][0] for name in wanted)}
    for s in stores.values():
        for _ in range(600):
            if socket.socket().connect_ex(("127.0.0.1", s)) == 0:
                break
            time.sleep(0.1)
    time.sleep(10)  # the API server answers later than it listens
    for how in ("C", "S"):
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            runs = [
                pool.submit(measure, name, how, stores[CASES[name][0]], CASES[name][1])
                for name in wanted
            ]
            for run in concurrent.futures.as_completed(runs):
                print(run.result(), flush=True)


try:
    main()
finally:
    for child in reversed(children):
        if child.poll() is None:
            child.terminate()
    for child in children:
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
