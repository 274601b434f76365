"""IDs as text that says what they identify: order_03887nf7a8003.

The text is a prefix, "_" and the ID in Crockford's base32, in lower case: 13
digits for 64 bits, 26 for 128. Texts of one prefix sort like their IDs. These
are the rules of TypeID 0.3; docs/forms.md specifies them.
"""

from __future__ import annotations

import re
import uuid
from typing import Any, Generic, NoReturn, TypeVar, overload

from .errors import OptionError, ParseError, check_text, quote

T = TypeVar("T", bound="int | uuid.UUID")

DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUES = str.maketrans(DIGITS, "0123456789abcdefghijklmnopqrstuv")  # the digits of int(…, 32)
_MEANT = {"i": "1", "l": "1", "o": "0", "u": "v"}


class Typed(Generic[T]):
    """Formats and parses the IDs of one prefix.

    ORDER = Typed("order")
    ORDER.format(117383499776000003)  # "order_03887nf7a8003"
    ORDER.parse("order_03887nf7a8003")  # 117383499776000003
    """

    @overload
    def __init__(self: Typed[int], prefix: str) -> None: ...
    @overload
    def __init__(self, prefix: str, kind: type[T]) -> None: ...

    def __init__(self, prefix: str, kind: type[Any] = int) -> None:
        """kind: int for IDs of 64 bits, uuid.UUID for those of 128, as of Client.sequencer.

        A prefix has 1 to 63 characters of a-z and "_", and begins and ends with a
        letter. With an empty prefix, the text is only the digits.
        """
        fault = _fault(check_text("prefix", prefix))
        if prefix != "" and fault:
            raise OptionError(fault)
        if kind not in (int, uuid.UUID):
            raise OptionError(f"kind is {kind!r}: it must be int or uuid.UUID")
        self.prefix = prefix
        self._kind = kind

    def format(self, id: T) -> str:
        """Return the typed text of an ID."""
        if not isinstance(id, self._kind):
            raise OptionError(f"ID {id!r} is {type(id).__name__}, not {self._kind.__name__}")
        return (self.prefix and self.prefix + "_") + encode(id)

    def parse(self, text: str) -> T:
        """Return the ID of a typed text, or raise ParseError."""
        prefix, id = split(text)
        if prefix != self.prefix:
            _fail(text, f"its prefix is {quote(prefix)}, not {quote(self.prefix)}")
        if not isinstance(id, self._kind):
            has, want = (64, 128) if isinstance(id, int) else (128, 64)
            _fail(text, f"it has {has} bits after the prefix, not {want}")
        found: T = id
        return found


def encode(id: int | uuid.UUID) -> str:
    """Return the digits of an ID: 13 for an int, 26 for a UUID."""
    if isinstance(id, int) and not 0 <= id < 1 << 64:
        raise OptionError(f"{id} is not an ID of 64 bits")
    number, count = (id, 13) if isinstance(id, int) else (id.int, 26)
    return "".join([DIGITS[number >> shift & 31] for shift in range(5 * count - 5, -1, -5)])


def split(text: str) -> tuple[str, int | uuid.UUID]:
    """Return the prefix and the ID of a text with any prefix. It is as strict as Typed.parse."""
    if not isinstance(text, str):
        _fail(text, f"it is {type(text).__name__}, not str")
    prefix, underscore, digits = text.rpartition("_")
    if underscore:
        fault = _fault(prefix)
        if fault:
            _fail(text, fault)
    return prefix, decode(text, len(text) - len(digits))


def decode(text: str, start: int) -> int | uuid.UUID:
    """Return the ID whose digits begin at start."""
    digits = text[start:]
    for offset, c in enumerate(digits, start):
        if c in DIGITS:
            continue
        lower = c.lower()
        if lower in DIGITS:
            reason = f"is in upper case; it may mean {lower!r}"
        elif lower in _MEANT:
            reason = f"is not a digit; it may mean {_MEANT[lower]!r}"
        else:
            reason = f"is not a digit; digits are {DIGITS}"
        _fail(text, f"{c!r} at offset {offset} {reason}")
    if len(digits) not in (13, 26):
        has = f"it has {len(digits)} digits after the prefix"
        _fail(text, f"{has}; an ID of 64 bits has 13, and one of 128 has 26")
    bits, most = (64, "f") if len(digits) == 13 else (128, "7")
    if digits[0] > most:
        more = f"{digits[0]!r} at offset {start} is more than {most!r}"
        _fail(text, f"{more}: the number does not fit {bits} bits")
    number = int(digits.translate(_VALUES), 32)
    return number if bits == 64 else uuid.UUID(int=number)


def _fault(prefix: str) -> str:
    """Return what is wrong with a prefix, or ""."""
    other = re.search("[^a-z_]", prefix)
    if prefix == "":
        reason = "is empty"
    elif len(prefix) > 63:
        reason = f"has {len(prefix)} characters"
    elif other:
        reason = f"has {other[0]!r} at offset {other.start()}"
    elif prefix[0] == "_" or prefix[-1] == "_":
        reason = "begins or ends with an underscore"
    else:
        return ""
    rule = "a prefix has 1 to 63 characters of a-z and _, and begins and ends with a letter"
    return f"prefix {quote(prefix)} {reason}; {rule}"


def _fail(text: str, reason: str) -> NoReturn:
    raise ParseError(f"parse ID {quote(text)}: {reason}")
