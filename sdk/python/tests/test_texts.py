from __future__ import annotations

import json
import unittest
import uuid
from pathlib import Path
from typing import Any

from firn import OptionError, ParseError, Typed
from firn.typed import decode, encode, split
from firn.veil import Veiled

ROOT = Path(__file__).resolve().parents[3]
KEY = "00" * 32


@unittest.skipUnless((ROOT / "typed").is_dir(), "not in the repository")
class Vectors(unittest.TestCase):
    def test_typeid(self) -> None:
        found = json.loads((ROOT / "typed/testdata/typeid.json").read_text())
        self.assertEqual((len(found["valid"]), len(found["invalid"])), (9, 19))
        for x in found["valid"]:
            typed, id = Typed(x["prefix"], uuid.UUID), uuid.UUID(x["uuid"])
            self.assertEqual(typed.format(id), x["typeid"])
            self.assertEqual(typed.parse(x["typeid"]), id)
        for x in found["invalid"]:
            with self.assertRaises(ParseError, msg=x["name"]):
                split(x["typeid"])

    def test_veil(self) -> None:
        found = json.loads((ROOT / "veil/testdata/vectors.json").read_text())
        self.assertEqual(len(found), 200)
        for x in found:
            keys, name = f"{x['number']}:{x['key']}", x["sequencer"]
            veiled: Veiled[Any] = (
                Veiled(keys, name, uuid.UUID)
                if x["bits"] == 122
                else Veiled(keys, name, bits=x["bits"])
            )
            kind = uuid.UUID if x["bits"] == 122 else int
            id, number = kind(x["id"]), kind(x["veiled"])
            self.assertEqual(veiled.veil(id), number)
            self.assertEqual(veiled.unveil(number), id)
            self.assertEqual(veiled.format(id), x["text"])
            self.assertEqual(veiled.parse(x["text"]), id)


class TypedTexts(unittest.TestCase):
    def test_errors_name_the_character(self) -> None:
        order = Typed("order")
        self.assertEqual(order.parse("order_03887nf7a8003"), 117383499776000003)
        for text, want in {
            "order_03887Nf7a8003": "'N' at offset 11 is in upper case; it may mean 'n'",
            "order_o388r6f3g1w03": "'o' at offset 6 is not a digit; it may mean '0'",
            "order_0388r6f3gIw03": "'I' at offset 15 is not a digit; it may mean '1'",
            "order_0388r6f3guw03": "'u' at offset 15 is not a digit; it may mean 'v'",
            "order_0388r6f3g1é03": "'é' at offset 16 is not a digit",
            "order_0388r6f3g1٣03": "'٣' at offset 16 is not a digit",
            "order_0388r6f3g1w0": "it has 12 digits",
            "order_g000000000000": "'g' at offset 6 is more than 'f'",
            "order_00000000000000000000000000": "it has 128 bits after the prefix, not 64",
            "Order_0388r6f3g1w03": "prefix \"Order\" has 'O' at offset 0",
            "order__0388r6f3g1w03": "begins or ends with an underscore",
            "_0388r6f3g1w03": "is empty",
            "user_0388r6f3g1w03": 'its prefix is "user", not "order"',
            "0388r6f3g1w03\n": "is not a digit",
            "": "it has 0 digits",
            "order_" + "0" * 100_000: "it has 100000 digits",
        }.items():
            with self.assertRaises(ParseError) as caught:
                order.parse(text)
            self.assertIn(want, str(caught.exception))
            self.assertLess(len(str(caught.exception)), 400)

    def test_wrong_arguments(self) -> None:
        for prefix in ("Order", "order1", "_a", "a_", "a\n", "x" * 64):
            with self.assertRaises(OptionError):
                Typed(prefix)
        for other in (5, None, b"order_03887nf7a8003", ["x"]):
            for typed in (Typed("order"), Veiled(KEY, "orders")):
                with self.assertRaisesRegex(ParseError, "not str"):
                    typed.parse(other)  # type: ignore[arg-type]
            for make in (Typed, lambda x: Veiled(x, "o"), lambda x: Veiled(KEY, x)):
                with self.assertRaisesRegex(OptionError, "not str"):
                    make(other)  # type: ignore[call-overload]
        for id in (-1, 1 << 64, uuid.UUID(int=1), "1"):
            with self.assertRaises(OptionError):
                Typed("order").format(id)  # type: ignore[arg-type]
        with self.assertRaises(OptionError):
            Typed("order", str)  # type: ignore[type-var]

    def test_texts_sort_like_ids(self) -> None:
        ids = [0, 1, 31, 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
        texts = [encode(id) for id in ids]
        self.assertEqual(texts, sorted(texts))
        self.assertEqual([decode(text, 0) for text in texts], ids)


class VeiledTexts(unittest.TestCase):
    def test_replaced_key(self) -> None:
        old = Veiled(KEY, "orders").format(7)
        both = Veiled(f"# keys\n{KEY}\r\n\n12: {'0F' * 16}", "orders")
        self.assertEqual(both.parse(old), 7)
        self.assertTrue(both.format(7).startswith("v12_"))
        self.assertEqual(both.parse(both.format(7)), 7)
        with self.assertRaisesRegex(OptionError, "give only one"):
            both.veil(7)

    def test_invalid_texts(self) -> None:
        order, session = Veiled(KEY, "orders"), Veiled(KEY, "orders", uuid.UUID)
        for veiled, text, want in (
            (order, "order_03887nf7a8003", "does not begin with v"),
            (order, "v01_03887nf7a8003", "does not begin with v"),
            (order, "v2_03887nf7a8003", "key 2, which is not known"),
            (order, "v1_03887Nf7a8003", "'N' at offset 8 is in upper case"),
            (order, "v1_f3887nf7a8003", "is not an int from 1 to 9223372036854775807"),
            (order, "v1_00000000000000000000000001", "is not an int from 1"),
            (session, "v1_00000000000000000000000001", "is not a UUID of version 8"),
        ):
            with self.assertRaisesRegex(ParseError, want):
                veiled.parse(text)

    def test_invalid_arguments(self) -> None:
        for id in (0, 1 << 63, uuid.uuid4()):
            with self.assertRaises(OptionError):
                Veiled(KEY, "orders").format(id)  # type: ignore[arg-type]
        for id in (uuid.uuid4(), uuid.UUID("00000000-0000-7000-8000-000000000000")):
            with self.assertRaises(OptionError):
                Veiled(KEY, "orders", uuid.UUID).format(id)
        for keys in ("", "secret", "0:" + KEY, "01:" + KEY, KEY[:30], f"{KEY}\n1:{KEY}"):
            with self.assertRaises(OptionError) as caught:
                Veiled(keys, "orders")
            self.assertNotIn("secret", str(caught.exception))
        for arguments in ({"sequencer": ""}, {"sequencer": "orders", "bits": 62}):
            with self.assertRaises(OptionError):
                Veiled(KEY, **arguments)


if __name__ == "__main__":
    unittest.main()
