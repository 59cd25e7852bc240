"""The spellings in which a secret stands in a text: as it is, in base64, and in any encoding.

What JSON, URLs, HTML, shells, Markdown and wrapped lines make of a text is not listed but read
back, again and again until nothing changes: a key is found in whatever mixture it is spelled.
"""

import base64
import html
import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

# The second alphabet of base64 (RFC 4648).
_URL_SAFE = bytes.maketrans(b"+/", b"-_")

# Shorter ones stand in any text by chance.
_SHORTEST = 8

# So many encodings may stand one in the other; each costs a reading of the whole.
_DEEPEST = 8

Span = tuple[int, int]


class _Encoding(NamedTuple):
    """One way to write a text in another one."""

    lead: bytes
    """How each escape begins, which is fast to find."""

    escape: re.Pattern[bytes]
    decode: Callable[[bytes], bytes]

    def read(self, text: bytes) -> bytes:
        """Return what *text* says."""
        if self.lead not in text:
            return text
        if self.lead == b"%":
            # Ten times as fast for many of them.
            return unquote_to_bytes(text)
        return self.escape.sub(lambda found: self.decode(found[0]), text)


@lru_cache(maxsize=4096)
def _decode_entity(escape: bytes) -> bytes:
    return html.unescape(escape.decode()).encode(errors="surrogatepass")


def _drop(_escape: bytes) -> bytes:
    return b""


_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_HEXADECIMAL = re.compile(rb"[0-9a-fA-F]+")


@lru_cache(maxsize=4096)
def _decode_backslash(escape: bytes) -> bytes:
    escape = escape.lstrip(b"\\")
    kind = escape[:1]
    if kind in b"rntbf":
        return _LETTERS.get(escape, b"")
    if kind in b"0123":
        return bytes([int(escape, 8)])
    numbers = [int(each, 16) for each in _HEXADECIMAL.findall(escape)]
    if kind == b"x":
        return bytes(numbers)
    text = "".join(chr(min(each, sys.maxunicode)) for each in numbers)
    # Pairs of surrogates become characters.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


# One that begins no escape shows nothing; of several, as in JSON in JSON, all go.
_BACKSLASHES = re.compile(
    rb"\\\\{0,20}(?:u[dD][89abAB][0-9a-fA-F]{2}\\{1,20}u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}"
    rb"|[0-3][0-7]{2}|[rntbf])?"
)
_ENTITY = re.compile(
    rb"&(?:#0{0,20}[0-9]{1,7};?|#[xX]0{0,20}[0-9a-fA-F]{1,6};?"
    rb"|[a-zA-Z][a-zA-Z0-9]{1,31};|amp|[lg]t|quot)"
)
_ENCODINGS = (
    _Encoding(b"\\", _BACKSLASHES, _decode_backslash),
    _Encoding(b"%", re.compile(rb"%[0-9a-fA-F]{2}"), lru_cache(unquote_to_bytes)),
    _Encoding(b"&", _ENTITY, _decode_entity),
    # Marks of Markdown.
    _Encoding(b"*", re.compile(rb"\*\**"), _drop),
    _Encoding(b"`", re.compile(rb"``*"), _drop),
    _Encoding(b"~~", re.compile(rb"~~"), _drop),
)
_LINES = (
    _Encoding(b"\r", re.compile(rb"\r"), _drop),
    _Encoding(b"\n", re.compile(rb"\n[ \t]*"), _drop),
)

# An escape that may go on.
_HALF = re.compile(
    rb"(?:%[0-9a-fA-F]?|&#?[a-zA-Z0-9]{0,32}"
    rb"|\\+(?:[uU]\{?[0-9a-fA-F]{0,7}|x[0-9a-fA-F]?|[0-7]{1,2})?)\Z"
)
_LONGEST_HALF = 40


def as_form(text: bytes) -> bytes:
    """Return *text* with a space for each plus, as web forms write spaces."""
    return text.replace(b"+", b" ")


@lru_cache(maxsize=64)
def find_forms(secrets: tuple[str, ...]) -> frozenset[bytes]:
    """Return what to find in the readings of a text, ``as_form``: *secrets*, in base64 too."""
    forms: set[bytes] = set()
    for secret in secrets:
        # A variable need not be UTF-8; what is no text of it shows as U+FFFD in a reply.
        data = secret.encode(errors="surrogateescape")
        escaped, replaced = secret.encode(errors="surrogatepass"), data.decode(errors="replace")
        forms |= {data, escaped, replaced.encode(), *_in_base64(data)}
        read = read_all(data)[-1]
        if len(read) >= _SHORTEST:
            forms.add(read)
    return frozenset(map(as_form, forms))


def read_all(data: bytes, *, joined: bool = True) -> list[bytes]:
    """Return *data*, and what it says each time that an encoding is read; lines are *joined*."""
    return [data, *(text for _how, text in _read_all(data, joined=joined))]


def find_spans(
    data: bytes, find: Callable[[bytes], Iterable[Span]], *, joined: bool = True
) -> list[Span]:
    """Return where in *data* is what *find* finds in any of its readings; sorted."""
    readings = _read_all(data, joined=joined)
    found: set[Span] = set()
    while readings:
        how, text = readings.pop()
        found |= set(find(text))
        if found:
            found = set(_locate(found, readings[-1][1] if readings else data, how))
    return sorted(found.union(find(data)))


def cut_half(reading: bytes) -> bytes:
    """Return *reading* without what may be the first half of an escape at its end."""
    half = _HALF.search(reading, max(0, len(reading) - _LONGEST_HALF))
    return reading if half is None else reading[: half.start()]


def _read_all(data: bytes, *, joined: bool) -> list[tuple[_Encoding, bytes]]:
    """Return each reading of *data*, and which encoding was read in the one before it."""
    readings: list[tuple[_Encoding, bytes]] = []
    for _ in range(_DEEPEST):
        before = len(readings)
        for how in (*_ENCODINGS, *(_LINES if joined else ())):
            read = how.read(data)
            if read != data:
                data = read
                readings.append((how, read))
        if len(readings) == before:
            break
    return readings


def _locate(spans: Iterable[Span], text: bytes, how: _Encoding) -> list[Span]:
    """Return where in *text* are *spans* of its reading; of an escape that one cuts, all is in."""
    spans = list(spans)
    # An end before a beginning at the same place: what was dropped there belongs to neither.
    points = sorted({each for start, end in spans for each in ((start, 1), (end, 0))})
    places: dict[Span, int] = {}
    begin = end = read_end = 0
    for found in how.escape.finditer(text):
        read_begin = read_end + found.start() - end
        while len(places) < len(points) and points[len(places)] < (read_begin, 1):
            point = points[len(places)]
            places[point] = _place(point, begin, end, read_end)
        if len(places) == len(points):
            break
        begin, end = found.span()
        read_end = read_begin + len(how.decode(found[0]))
    for point in points[len(places) :]:
        places[point] = _place(point, begin, end, read_end)
    return [(places[start, 1], places[end, 0]) for start, end in spans]


def _place(point: Span, begin: int, end: int, read_end: int) -> int:
    """Return where a beginning (or end) of a span is, behind or in an escape from begin to end."""
    at, is_beginning = point
    if at < read_end:
        return begin if is_beginning else end
    return end + at - read_end


def _in_base64(data: bytes) -> set[bytes]:
    """Return what encodes *data* wherever it stands in a text, and at the end of one."""
    forms = set()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data)
        # Six bits a character: the first and the last may share bits with what is around.
        start, end = -(-8 * before // 6), 8 * (before + len(data)) // 6
        for form in (encoded[start:end], encoded[start:], encoded[start:].rstrip(b"=")):
            if len(form) >= _SHORTEST:
                forms |= {form, form.translate(_URL_SAFE)}
    return forms
