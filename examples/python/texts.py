import os
from pathlib import Path

from firn import ParseError, Typed
from firn.veil import Veiled

ORDER = Typed("order")
print(ORDER.format(117383499776000003))  # order_03887nf7a8003
print(ORDER.parse("order_03887nf7a8003"))  # 117383499776000003

SHARED = Veiled(Path(os.environ.get("VEIL_KEYS", "keys")).read_text(), "orders")
text = SHARED.format(117383499776000003)  # v1_ and 13 digits that look random
print(SHARED.parse(text))  # 117383499776000003
try:
    SHARED.parse(text.upper())
except ParseError as error:
    print(error)
