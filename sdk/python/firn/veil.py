"""Veiled IDs: they look random, and turn back into the ID with the key.

    ORDER = Veiled(Path("keys").read_text(), "orders")
    ORDER.format(117383499776000003)  # "v1_…"
    ORDER.parse("v1_…")  # 117383499776000003

They hide when and how many IDs were made. They do not authorize, and a wrong key
gives another ID and not an error. docs/veil.md specifies them. The module needs
the package cryptography: pip install "firn-id[veil]".
"""

from __future__ import annotations

import re
import uuid
from typing import Any, Generic, TypeVar, cast, overload

try:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
except ImportError as error:
    raise ImportError('firn.veil needs cryptography: pip install "firn-id[veil]"') from error

from .errors import OptionError, ParseError, check_text, quote
from .typed import decode, encode

T = TypeVar("T", bound="int | uuid.UUID")

LOW62 = (1 << 62) - 1


class Veiled(Generic[T]):
    """Veils and unveils the IDs of one sequencer. It is safe for use by many threads."""

    @overload
    def __init__(self: Veiled[int], keys: str, sequencer: str, *, bits: int = 63) -> None: ...
    @overload
    def __init__(self, keys: str, sequencer: str, kind: type[T]) -> None: ...

    def __init__(self, keys: str, sequencer: str, kind: type[Any] = int, *, bits: int = 63) -> None:
        """keys: a line for each key, in hexadecimal, with its number and a colon
            in front unless it is 1. The key with the highest number writes.
        kind: int, or uuid.UUID for the layout uuidv7.
        bits: how many bits of an int are veiled: 63 for the layout default, 53
            for js53, 64 for layouts that use all bits; see docs/veil.md.
        """
        if kind not in (int, uuid.UUID) or bits not in (53, 63, 64):
            raise OptionError(f"kind is {kind!r}, bits {bits}: write int or UUID; 53, 63 or 64")
        if not check_text("sequencer", sequencer):
            raise OptionError("sequencer is empty: write the name of the sequencer")
        bits = 122 if kind is uuid.UUID else bits
        self._bits = bits
        self._ciphers = {n: _FF1(key, sequencer, bits) for n, key in _parse_keys(keys).items()}
        self._newest = max(self._ciphers)

    def format(self, id: T) -> str:
        """Return the veiled text of an ID, with the number of the newest key."""
        return f"v{self._newest}_{encode(self._turn(id, self._newest, True))}"

    def parse(self, text: str) -> T:
        """Return the ID of a veiled text, or raise ParseError."""
        found = isinstance(text, str) and re.match("v([1-9][0-9]{0,3})_", text)
        if not isinstance(text, str):
            fault = f"it is {type(text).__name__}, not str"
        elif not found:
            fault = "it does not begin with v, the number of a key and _"
        elif int(found[1]) not in self._ciphers:
            fault = f"it was veiled with key {found[1]}, which is not known"
        else:
            try:
                return self._turn(decode(text, found.end()), int(found[1]), False)
            except OptionError as error:
                fault = str(error)
        raise ParseError(f"parse veiled ID {quote(text)}: {fault}")

    def veil(self, id: T) -> T:
        """Return the veiled ID as a number or UUID, which does not name its key."""
        return self._turn(id, None, True)

    def unveil(self, veiled: T) -> T:
        """Return the ID of a veiled number or UUID. Any other one gives some ID too."""
        return self._turn(veiled, None, False)

    def _turn(self, id: Any, key: int | None, veil: bool) -> T:
        if key is None and len(self._ciphers) > 1:
            raise OptionError("veiled numbers do not name their key: give only one in keys")
        what, version, other = ("ID", 7, 8) if veil else ("veiled ID", 8, 7)
        permute = self._ciphers[key or self._newest].permute
        if self._bits < 122:
            if not isinstance(id, int) or not 1 <= id < 1 << self._bits:
                raise OptionError(f"{what} {id} is not an int from 1 to {(1 << self._bits) - 1}")
            return cast(T, permute(id, veil))
        if not isinstance(id, uuid.UUID) or (id.variant, id.version) != (uuid.RFC_4122, version):
            raise OptionError(f"{what} {id} is not a UUID of version {version}")
        number = id.int >> 80 << 74 | (id.int >> 64 & 0xFFF) << 62 | id.int & LOW62
        if number == 0:
            raise OptionError(f"{what} {id} has no bits besides version and variant")
        number = permute(number, veil)
        top = number >> 74 << 16 | other << 12 | number >> 62 & 0xFFF
        return cast(T, uuid.UUID(int=top << 64 | 2 << 62 | number & LOW62))


def _parse_keys(text: str) -> dict[int, bytes]:
    """Parse the lines of a file of keys. Errors do not contain keys."""
    keys: dict[int, bytes] = {}
    for at, line in enumerate(check_text("keys", text).split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        found = re.fullmatch("(?:([1-9][0-9]{0,3}):)? *([0-9A-Fa-f]*)", line)
        if found is None:
            raise OptionError(f"keys: line {at}: write hexadecimal digits, or NUMBER:DIGITS")
        number, key = int(found[1] or 1), found[2]
        if len(key) not in (32, 48, 64):
            raise OptionError(f"keys: line {at}: the key has {len(key)} digits: use 32, 48 or 64")
        if number in keys:
            raise OptionError(f"keys: line {at}: key {number} is there twice")
        keys[number] = bytes.fromhex(key)
    if not keys:
        raise OptionError("keys: no key found: write 64 digits, as from openssl rand -hex 32")
    return keys


class _FF1:
    """FF1 of NIST SP 800-38G with AES, radix 2 and ten rounds, for numbers from 1."""

    def __init__(self, key: bytes, sequencer: str, bits: int) -> None:
        self._aes = algorithms.AES(key)
        self._widths = (bits // 2, bits - bits // 2)
        self._size = size = (self._widths[1] + 7) // 8  # bytes of a half
        tweak = f"{sequencer}/{bits}".encode()
        head = bytes([1, 2, 1, 0, 0, 2, 10, bits // 2])
        head += bits.to_bytes(4, "big") + len(tweak).to_bytes(4, "big") + tweak
        head += bytes(-(len(head) + 1 + size) % 16 + 1 + size)
        # Of the message that a round hashes, only the last block changes.
        hashed = Cipher(self._aes, modes.CBC(bytes(16))).encryptor().update(head[:-16])
        self._last = int.from_bytes(head[-16:], "big") ^ int.from_bytes(hashed[-16:], "big")

    def permute(self, number: int, encrypt: bool) -> int:
        step = 1 if encrypt else -1
        update = Cipher(self._aes, modes.ECB()).encryptor().update
        unused = 128 - 8 * (-(-self._size // 4) * 4 + 4)  # of the hash
        low = self._widths[1]
        while True:
            a, b = (number >> low, number & (1 << low) - 1)[::step]
            for i in range(10)[::step]:
                block = self._last ^ i << 8 * self._size ^ b
                hashed = int.from_bytes(update(block.to_bytes(16, "big")), "big") >> unused
                a, b = b, (a + step * hashed) % (1 << self._widths[i % 2])
            a, b = (a, b)[::step]
            number = a << low | b
            if number != 0:  # which is not an ID
                return number
