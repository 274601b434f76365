from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from servers import FakeServer

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "python"


@unittest.skipUnless(EXAMPLES.is_dir(), "not in the repository")
class Docs(unittest.TestCase):
    def test_code_of_pages_is_that_of_examples(self) -> None:
        examples = "\n".join(file.read_text() for file in EXAMPLES.glob("*.py"))
        page = (ROOT / "docs" / "python.md").read_text()
        blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        self.assertEqual(len(blocks), 4)
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

    def test_test_of_the_service(self) -> None:
        self.assertIn("OK", self.run_example("test_service.py"))

    @unittest.skipUnless(os.environ.get("FIRN_URL"), "FIRN_URL names no server")
    def test_quickstart(self) -> None:
        self.assertRegex(self.run_example("quickstart.py"), r"^\d+ \[\d+, \d+, \d+\]\n$")


if __name__ == "__main__":
    unittest.main()
