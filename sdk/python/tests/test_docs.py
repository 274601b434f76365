from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

from servers import FakeServer

import firn
from firn.veil import Veiled

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "python"


@unittest.skipUnless(EXAMPLES.is_dir(), "not in the repository")
class Docs(unittest.TestCase):
    def test_code_of_pages_is_that_of_examples(self) -> None:
        examples = "\n".join(file.read_text() for file in EXAMPLES.glob("*.py"))
        for name, count in (("python.md", 4), ("orm.md", 2)):
            page = (ROOT / "docs" / name).read_text()
            blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
            self.assertEqual(len(blocks), count, name)
            for block in blocks:
                self.assertIn(block, examples)

    def run_example(self, *args: str) -> str:
        server = FakeServer()
        self.addCleanup(server.close)
        done = subprocess.run(
            [sys.executable, EXAMPLES / args[0], *args[1:]],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "sdk" / "python"),
                "FIRN_SERVERS": os.environ.get("FIRN_URL", server.url),
            },
            capture_output=True,
            timeout=60,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def test_tasks(self) -> None:
        self.assertEqual(self.run_example("tasks.py"), "100 IDs, 5 more\n")

    def test_texts(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["VEIL_KEYS"] = folder + "/keys"
            self.addCleanup(os.environ.pop, "VEIL_KEYS")
            Path(folder, "keys").write_text("00" * 32)
            said = self.run_example("texts.py")
        self.assertRegex(
            said, r"^order_03887nf7a8003\n(117383499776000003\n){2}parse veiled ID .+\n$"
        )

    def test_tests_of_the_examples(self) -> None:
        for file in EXAMPLES.glob("test_*.py"):
            self.assertIn("OK", self.run_example(file.name))

    def test_webshop(self) -> None:
        server = FakeServer()
        self.addCleanup(server.close)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        (Path(directory.name) / "veil.keys").write_text("07" * 32)
        shop = subprocess.Popen(
            [sys.executable, EXAMPLES / "webshop.py"],
            cwd=directory.name,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "sdk" / "python"),
                "FIRN_SERVERS": os.environ.get("FIRN_URL", server.url),
                "PORTS": "0,0",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.addCleanup(shop.__exit__, None, None, None)
        self.addCleanup(shop.kill)
        assert shop.stdout is not None
        public, staff = (shop.stdout.readline().strip() for _ in range(2))
        _, placed = self.ask(public, b"item=tea")
        url = placed["url"].removeprefix("/orders/")
        with closing(sqlite3.connect(Path(directory.name) / "shop.db")) as db:
            ((stored, item),) = db.execute("SELECT id, item FROM orders")
        self.assertEqual((Veiled("07" * 32, "orders").parse(url), item), (stored, "tea"))
        typed = firn.Typed("order").format(stored)
        for address, status, said in (
            (f"{public}/{url}", 200, {"item": "tea"}),
            (f"{staff}/{typed}", 200, {"id": typed, "item": "tea"}),
            (f"{public}/v1_0000000000001", 404, {"error": "not found"}),
        ):
            self.assertEqual(self.ask(address), (status, said))
        for plain in (typed, str(stored), "tea"):
            self.assertEqual(self.ask(f"{public}/{plain}")[0], 400, plain)
        for other in (url, str(stored), typed.replace("order", "user")):
            self.assertEqual(self.ask(f"{staff}/{other}")[0], 400, other)

    def ask(self, url: str, form: bytes | None = None) -> tuple[int, dict[str, str]]:
        try:
            with urllib.request.urlopen(url, form, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    @unittest.skipUnless(os.environ.get("FIRN_URL"), "FIRN_URL names no server")
    def test_quickstart(self) -> None:
        self.assertRegex(self.run_example("quickstart.py"), r"^\d+ \[\d+, \d+, \d+\]\n$")


if __name__ == "__main__":
    unittest.main()
