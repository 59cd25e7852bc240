"""Join pieces of bytes to lines, and mask keys in them.

Lines are masked whole, up to a length; a private key is masked over all its lines, and so is a
secret in lines that arrive together. Control characters stay.
"""

import codecs
import re
from collections.abc import Iterator

from uwf_git.commands.agent_run.mask import Secrets
from uwf_git.engine.masking import mask, mask_keys
from uwf_git.model.text import without_colours

CONTEXT_BYTES = 16 * 1024
"""How far back a private key may have begun."""

LAST_BYTES = 2 * CONTEXT_BYTES
"""How much of the end of a log its last line is looked for in."""

_SHOWN_BYTES = 4 * 1024
_LONGEST_LINE = 256 * 1024
# RSA keys are the longest: 16384 bits make 200 lines.
_MOST_KEY_LINES = 250

_SPACE = re.compile(r"\s")
# A program overwrites a line with a lone carriage return; each version is a line here.
_LINE_END = re.compile(r"\r\n|[\r\n]")
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_KEY_ENDS = re.compile(r"-----END [A-Z ]*PRIVATE KEY-----")


class LogLines:
    """The lines of one log, as its bytes arrive."""

    def __init__(self, secrets: Secrets, *, before: bytes = b"") -> None:
        """Create it; *before* is the log before the first piece: a key may have begun there."""
        self._secrets = secrets
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
        self._key_lines = 0
        if before:
            for _line in self.add(before):
                pass
            self._held = ""
            self._decoder.reset()

    def add(self, piece: bytes) -> Iterator[str]:
        """Yield the lines that *piece* completes, without line ends."""
        text = self._held + self._decoder.decode(piece)
        # A carriage return at the end may be the first half of "\r\n".
        end = max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1
        self._held = text[end:]
        yield from self._masked(text[:end])
        if len(self._held) > _LONGEST_LINE:
            yield from self._cut()

    def end(self) -> Iterator[str]:
        """Yield the last line if it has no line end."""
        held = self._held + self._decoder.decode(b"", final=True)
        self._held = ""
        if held:
            yield from self._masked(held.removesuffix("\r"))

    def _cut(self) -> Iterator[str]:
        # Cut at a space: keys have none.
        place = self._held.rfind(" ") + 1 or len(self._held)
        line, self._held = self._held[:place], self._held[place:]
        yield from self._masked(line)

    def _masked(self, text: str) -> Iterator[str]:
        # Over all lines: `base64` wraps what it prints.
        masked = mask(text, self._secrets.find_in(text))
        start = 0
        for end in _LINE_END.finditer(masked):
            yield from self._without_keys(masked[start : end.start()])
            start = end.end()
        if start < len(masked):
            yield from self._without_keys(masked[start:])

    def _without_keys(self, line: str) -> Iterator[str]:
        if 0 < self._key_lines <= _MOST_KEY_LINES:
            ends = _KEY_ENDS.search(line)
            self._key_lines = 0 if ends else self._key_lines + 1
            if ends is None:
                return
            line = line[ends.end() :]
            if not line:
                return
        begun = list(_KEY_BEGINS.finditer(line))
        self._key_lines = int(bool(begun) and _KEY_ENDS.search(line, begun[-1].end()) is None)
        yield mask_keys(line) if line else ""


class LastLine:
    """The last line of a log that says anything, without colours; keys are masked."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._tail = b""
        self._is_cut = False
        self._found = (b"", "")
        """The last line, and what it was found in."""

    def add(self, piece: bytes) -> None:
        """Add what the log has grown by."""
        tail = self._tail + piece
        self._is_cut = self._is_cut or len(tail) > LAST_BYTES
        self._tail = tail[-LAST_BYTES:]

    def find(self) -> str:
        """Return the line; "" if there is none. It may not have ended yet."""
        tail = self._tail
        if self._found[0] is not tail:
            # Another thread may add meanwhile.
            self._found = (tail, self._find(tail, is_cut=self._is_cut))
        return self._found[1]

    def _find(self, tail: bytes, *, is_cut: bool) -> str:
        if len(tail) > _SHOWN_BYTES and b"PRIVATE KEY" not in tail:
            tail, is_cut = tail[-_SHOWN_BYTES:], True
        text = tail.decode(errors="replace")
        if is_cut:
            # Half a key could not be masked; keys have no space.
            text = "".join(_SPACE.split(text, maxsplit=1)[1:])
        masked = mask_keys(mask(text, self._secrets.find_in(text)))
        lines = (without_colours(line).strip() for line in reversed(_LINE_END.split(masked)))
        return next(filter(None, lines), "")
