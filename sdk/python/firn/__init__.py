"""Unique, time-ordered IDs from Firn servers, fetched before they are needed.

    client = firn.Client(["http://127.0.0.1:3476"])
    orders = client.sequencer("orders")
    id = orders.next()

For asyncio, see firn.aio; for tests without a server, firn.testing; for IDs that
hide their time and number, firn.veil.
"""

from ._client import Client, Sequencer
from ._health import ServerStatus
from .errors import (
    AnswerError,
    ClosedError,
    FirnError,
    NetworkError,
    OptionError,
    ParseError,
    ServerError,
    TLSError,
    TokenError,
    UnavailableError,
)
from .typed import Typed

__version__ = "0.0.0"

__all__ = [
    "AnswerError",
    "Client",
    "ClosedError",
    "FirnError",
    "NetworkError",
    "OptionError",
    "ParseError",
    "Sequencer",
    "ServerError",
    "ServerStatus",
    "TLSError",
    "TokenError",
    "Typed",
    "UnavailableError",
]
