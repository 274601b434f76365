"""The errors of this package, one class per meaning.

Every class can be pickled, so that errors cross process boundaries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping


class FirnError(Exception):
    """The base class of all errors of this package."""


class OptionError(FirnError, ValueError):
    """An option or an argument is invalid. The text names it."""


class ParseError(FirnError, ValueError):
    """A text is not an ID of the expected form. The message names the character or prefix."""


class ClosedError(FirnError):
    """The sequencer or its client was closed."""

    def __init__(self, sequencer: str) -> None:
        super().__init__(sequencer)
        self.sequencer = sequencer

    def __str__(self) -> str:
        return f"{quote(self.sequencer)}: the client is closed"


class TokenError(FirnError):
    """The function that returns the token failed, or its result is not a token."""


class NetworkError(FirnError):
    """A server could not be reached, or its answer did not arrive."""

    def __init__(self, sequencer: str, server: str, reason: str) -> None:
        super().__init__(sequencer, server, reason)
        self.sequencer = sequencer
        self.server = server
        self.reason = reason

    def __str__(self) -> str:
        return f"{quote(self.sequencer)} at {self.server}: {self.reason}"


class TLSError(NetworkError):
    """The server's certificate is not trusted, or it does not speak TLS."""


class AnswerError(NetworkError):
    """A server returned something other than the requested IDs. None of them is used."""

    def __str__(self) -> str:
        where = f"{quote(self.sequencer)} at {self.server}"
        return f"{where}: the answer cannot be used: {self.reason}"


class ServerError(FirnError):
    """A server refused a request.

    kind tells errors apart: "no-sequencer", "draining", …; docs/http.md lists
    all. It is "" if the answer does not come from a Firn server.
    """

    def __init__(
        self,
        sequencer: str,
        server: str,
        status: int,
        kind: str = "",
        detail: str = "",
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(sequencer, server, status, kind, detail, retry_after)
        self.sequencer = sequencer
        self.server = server
        self.status = status
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after

    @property
    def hint(self) -> str:
        """What the user of this package can do, or ""."""
        if self.kind == "no-sequencer":
            return f"create it: firn sequencer create {self.sequencer}"
        if self.kind:
            return _HINTS.get(self.kind, "")
        if self.status in (401, 403):
            return "check the option token"
        if 300 <= self.status < 400:
            return "redirects are not followed: put the target address into the option servers"
        if "HTTPS server" in self.detail:
            return "the server speaks TLS: write https:// in the option servers"
        return "is this a Firn server? check the address and path in the option servers"

    def __str__(self) -> str:
        text = f"{quote(self.sequencer)} at {self.server}: {self.status}"
        if self.kind:
            text += " " + self.kind
        if self.detail:
            text += ": " + self.detail
        if self.hint:
            text += f" ({self.hint})"
        return text

    @property
    def temporary(self) -> bool:
        """Whether the same server may fulfill the same request later."""
        return self.status in (408, 429, 502, 503, 504)

    @property
    def of_server(self) -> bool:
        """Whether the server as a whole does not work, not only this sequencer."""
        return self.kind in _KINDS_OF_SERVER

    @property
    def of_request(self) -> bool:
        """Whether the request is wrong, so that probably no server fulfills it."""
        return 400 <= self.status < 500 and not self.temporary and not self.of_server


class UnavailableError(FirnError):
    """No server returned IDs. reasons has the last failure of each server."""

    def __init__(self, sequencer: str, reasons: Mapping[str, FirnError]) -> None:
        super().__init__(sequencer, reasons)
        self.sequencer = sequencer
        self.reasons = reasons

    def __str__(self) -> str:
        prefix = quote(self.sequencer) + " at "
        texts = [str(error).removeprefix(prefix) for error in self.reasons.values()]
        return f"no server gives IDs of {quote(self.sequencer)}: " + (
            "; ".join(texts) or "no answer in time"
        )


_HINTS = {
    "unauthorized": "check the option token",
    "forbidden": "the token needs the role generate for this sequencer",
    "batch-too-large": "set a smaller max_batch",
    "foreign-host": "use localhost in the option servers, or start the server with --allow-host",
    "moved": "ask a server of that store, or bring it back: firn sequencer move",
    "detached": "run firn sequencer attach",
    "destroyed": "create it again: firn sequencer create",
    "not-found": "check the path in the option servers",
    "busy": "clients ask for more IDs than one node ID can make: add servers",
    "store-rolled-back": "run firn node fence",
    "too-many-names": "start the server with a higher --max-sequencers, or use fewer names",
    "rate-limited": "ask less often, or have the limit of this token raised",
    "internal": "see the server's log",
    "bad-config": "run firn config check on the server",
    "clock": "correct the server's clock",
}

# These kinds concern the server as a whole. So does "", which something else than
# a Firn server has answered. All others concern one sequencer.
_KINDS_OF_SERVER = ("", "unauthorized", "no-store", "foreign-host", "internal", "draining")


def check_text(what: str, value: str) -> str:
    """Return the value of an argument, or raise OptionError if it is not a str."""
    if not isinstance(value, str):
        raise OptionError(f"{what} is {type(value).__name__}, not str")
    return value


def quote(text: object) -> str:
    """Quote a text that may be anything, truncated to fit a log line."""
    if not isinstance(text, str):
        return repr(text)[:80]
    return json.dumps(text if len(text) <= 80 else text[:80] + "…", ensure_ascii=False)


def printable(text: str) -> str:
    """Replace what a terminal might interpret."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
