"""Stop notices: the JSON object that a hook sends when an AI tool stops. Source: seed 002."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.agents.reply import BadJson, parse_strict_json

PHASES = ("planning", "executing")
"""The phases in which an agent is at work, and so can stop."""

MOST_BYTES = 64 * 1024
MOST_DEPTH = 20

_MARK = b"\xef\xbb\xbf"
_SHOWN = 40


class BadNotice(ValueError):
    """The bytes are no stop notice; the message says why."""


class Notice(NamedTuple):
    """A tool has stopped; it decides nothing by itself."""

    phase: str
    thread: str | None
    head: str | None
    """The node after which the tool's turn began, and its thread; None: the sender did not say."""

    document: Mapping[str, Any]
    """All that was sent: its ``timestamp`` is recorded and never trusted."""


class TurnAtWork(NamedTuple):
    """The turn that the driver waits for."""

    thread: str
    head: str
    phase: str


def counts_for(notice: Notice, turn: TurnAtWork) -> bool:
    """Check whether *notice* is about *turn*; without thread and head it is, in the same phase."""
    return (
        notice.phase == turn.phase
        and notice.thread in {None, turn.thread}
        and notice.head in {None, turn.head}
    )


class NoticeScanner:
    """Finds the end of the first JSON object in bytes that come piece by piece."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._scanned = 0
        self._has_begun = False
        self._depth = 0
        self._is_text = self._is_escaped = False

    def add(self, piece: bytes) -> bytes | None:
        """Return the object as soon as it is whole, None before; what follows it is ignored.

        Raises:
            BadNotice: it is no object, too large or too deep.
        """
        self._bytes += piece
        if not self._has_begun and not self._begin():
            return None
        for place in range(self._scanned, min(len(self._bytes), MOST_BYTES)):
            self._step(self._bytes[place])
            if self._depth == 0:
                return bytes(self._bytes[: place + 1])
        if len(self._bytes) >= MOST_BYTES:
            raise BadNotice(f"it has more than {MOST_BYTES:,} bytes")
        self._scanned = len(self._bytes)
        return None

    def _begin(self) -> bool:
        """Drop the byte order mark; return False if more bytes are needed to see what comes."""
        if _MARK.startswith(bytes(self._bytes)):
            return False
        if self._bytes.startswith(_MARK):
            del self._bytes[: len(_MARK)]
        if not self._bytes.startswith(b"{"):
            raise BadNotice("it does not begin with {")
        self._has_begun = True
        return True

    def _step(self, byte: int) -> None:
        if self._is_text:
            is_quote = byte == ord('"') and not self._is_escaped
            self._is_escaped = byte == ord("\\") and not self._is_escaped
            self._is_text = not is_quote
        elif byte == ord('"'):
            self._is_text = True
        elif byte in b"{[":
            self._depth += 1
            if self._depth > MOST_DEPTH:
                raise BadNotice(f"it has more than {MOST_DEPTH} levels")
        elif byte in b"}]":
            self._depth -= 1


def parse_notice(content: bytes) -> Notice:
    """Parse the object that a ``NoticeScanner`` found.

    Raises:
        BadNotice: it is not JSON in UTF-8, or not a stop notice.
    """
    try:
        document = parse_strict_json(content.decode())
    except UnicodeDecodeError as error:
        raise BadNotice(f"it is not UTF-8 (byte {error.start:,})") from error
    except BadJson as error:
        raise BadNotice(f"it is {error.message}") from error
    if not isinstance(document, dict) or document.get("type") != "stop":
        raise BadNotice('its type is not "stop"')
    if document.get("phase") not in PHASES:
        raise BadNotice(f"its phase is not {' or '.join(PHASES)}")
    return Notice(document["phase"], _name(document, "thread"), _name(document, "head"), document)


def _name(document: Mapping[str, Any], key: str) -> str | None:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise BadNotice(f"its {key} is not a text: {value!r:.{_SHOWN}}")
    return value or None
