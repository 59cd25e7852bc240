"""Log lines: pieces of bytes put together to lines that may be shown.

Owns: where a line ends, and taking out what is or looks like a key.
Knows nothing of: where the bytes come from. Controls stay in: who shows them spells them out.
Always true: no line is masked in parts, unless it is longer than any that people write; a private
key is masked to its end, over all its lines.
"""

import codecs
import re
from collections.abc import Iterator, Sequence

from uwf_git.engine.key_shapes import mask_keys
from uwf_git.engine.masking import mask

CONTEXT_BYTES = 16 * 1024
"""How far back the beginning of a private key may be."""

_LONGEST_LINE = 256 * 1024
# Of keys, RSA's are the longest: 16384 bits make 200 lines.
_MOST_KEY_LINES = 250

# A lone carriage return lets a program write its line anew: for us each is a line.
_LINE_END = re.compile(r"\r\n|[\r\n]")
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_KEY_ENDS = re.compile(r"-----END [A-Z ]*PRIVATE KEY-----")


class LogLines:
    """The lines of one log, as its bytes come."""

    def __init__(self, secrets: Sequence[str], *, before: bytes = b"") -> None:
        """*before* is what the log holds before the first piece: a key may have begun there."""
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
        """Give the lines that *piece* completes, without their ends."""
        text = self._held + self._decoder.decode(piece)
        start = 0
        for end in _LINE_END.finditer(text):
            if end[0] == "\r" and end.end() == len(text):
                # Perhaps the first half of an end.
                break
            yield from self._masked(text[start : end.start()])
            start = end.end()
        self._held = text[start:]
        if len(self._held) > _LONGEST_LINE:
            yield from self._cut()

    def end(self) -> Iterator[str]:
        """Give the last line, if it has no end."""
        held = self._held + self._decoder.decode(b"", final=True)
        self._held = ""
        if held:
            yield from self._masked(held.removesuffix("\r"))

    def _cut(self) -> Iterator[str]:
        # Keys hold no spaces.
        place = self._held.rfind(" ") + 1 or len(self._held)
        line, self._held = self._held[:place], self._held[place:]
        yield from self._masked(line)

    def _masked(self, line: str) -> Iterator[str]:
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
        yield mask_keys(mask(line, self._secrets)) if line else ""
