"""Characters as JavaScript sees them: white space, names, and texts as UTF-16 units.

A text here is a str with one character for each UTF-16 unit, so that lengths, indexes, order and
joining are Python's own. `to_units` and `from_units` stand at the doors.
"""

import re
import sys
from array import array

LINE_ENDS = "\n\r\u2028\u2029"
SPACES = (
    "\t\v\f \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u202f\u205f\u3000\ufeff" + LINE_ENDS
)

_WORDS = (
    "arguments await break case catch class const continue debugger default delete do else enum "
    "eval export extends false finally for function if implements import in instanceof interface "
    "let new null package private protected public return static super switch this throw true try "
    "typeof var void while with yield undefined NaN Infinity Array Object"
)
RESERVED = frozenset(_WORDS.split())
"""What cannot be a name: JavaScript's words in strict mode, and what the grammar uses itself."""

# Of this machine, as arrays have it; without a name a byte order mark would be taken away.
_UTF_16 = f"utf-16-{sys.byteorder[0]}e"

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def to_units(text: str) -> str:
    """Return *text* with a pair of surrogates for each character beyond U+FFFF."""
    if text.isascii() or not _ASTRAL.search(text):
        return text
    return "".join(map(chr, array("H", text.encode(_UTF_16, "surrogatepass"))))


def from_units(text: str) -> str:
    """Return *text* with each pair of surrogates as one character; lone ones stay."""
    if not has_surrogate(text):
        return text
    return array("H", map(ord, to_units(text))).tobytes().decode(_UTF_16, "surrogatepass")


def has_surrogate(text: str) -> bool:
    """Check whether *text* has a surrogate; in a result of `from_units` it is a lone one."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def name_end(text: str, at: int) -> int:
    """Return where the name that begins at *at* ends; *at* if none does."""
    if at == len(text) or not (text[at] in "$_" or text[at].isidentifier()):
        return at
    end = at + 1
    while end < len(text) and (text[end] in "$\u200c\u200d" or f"_{text[end]}".isidentifier()):
        end += 1
    return end


def is_name(text: str) -> bool:
    """Check whether *text* can name a value, such as the item of a map."""
    return bool(text) and name_end(text, 0) == len(text) and text not in RESERVED
