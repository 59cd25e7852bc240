"""Mask secrets in texts that are stored: of the environment, or of the shape of a key."""

import base64
import html
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b, shake_256
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

# The spellings in which a secret stands in a text: as it is, in base64, in hexadecimal, and in any
# encoding.
#
# What JSON, URLs, HTML, shells, Markdown and wrapped lines make of a text is not listed but read
# back, again and again until nothing changes: a key is found in whatever mixture it is spelled.

# The second alphabet of base64 (RFC 4648).
_URL_SAFE = bytes.maketrans(b"+/", b"-_")

# Shorter ones stand in any text by chance.
_SHORTEST = 8

# So many encodings may stand one in the other; each costs a reading of the whole.
_DEEPEST = 8

# The letters of Latin-1 as bytes that are no UTF-8.
_BYTES = {letter: 0xDC00 + letter for letter in range(0x80, 0x100)}

Span = tuple[int, int]


class _Encoding(NamedTuple):
    lead: bytes
    """How each escape begins, which is fast to find."""

    escape: re.Pattern[bytes]
    decode: Callable[[bytes], bytes]

    def read(self, text: bytes) -> bytes:
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


def _unquote(escape: bytes) -> bytes:
    return b"'" * (escape.count(b"'") - 2)


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
    # A single quote within single quotes, as bash and dash print it, also without its backslash.
    _Encoding(b"'", re.compile(rb"'(?:\\{0,20}'|\"'{1,20}\")'"), _unquote),
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
    rb"(?:%[0-9a-fA-F]?|&#?[a-zA-Z0-9]{0,32}|'(?:\\*'?|\"'*\"?)"
    rb"|\\+(?:[uU]\{?[0-9a-fA-F]{0,7}|x[0-9a-fA-F]?|[0-7]{1,2})?)\Z"
)
_LONGEST_HALF = 40


def as_form(text: bytes) -> bytes:
    """Return *text* with a space for each plus, as web forms write spaces."""
    return text.replace(b"+", b" ")


@lru_cache(maxsize=64)
def find_forms(secrets: tuple[str, ...]) -> frozenset[bytes]:
    """Return what to find in a text's readings, ``as_form``: *secrets*, also as base64 and hex."""
    forms: set[bytes] = set()
    for secret in _spell_letters(secrets):
        # A variable need not be UTF-8; bytes that are no text show as U+FFFD in a reply.
        data = secret.encode(errors="surrogateescape")
        escaped, replaced = secret.encode(errors="surrogatepass"), data.decode(errors="replace")
        forms |= {data, escaped, replaced.encode(), *_in_base64(data)}
        if len(data) >= _SHORTEST:
            forms |= {data.hex().encode(), data.hex().upper().encode()}
        read = read_all(data)[-1]
        # Too short to be looked for once it is read, it is looked for as JSON writes it.
        forms.add(read if len(read) >= _SHORTEST else json.dumps(secret)[1:-1].encode())
    return frozenset(map(as_form, forms))


def _spell_letters(secrets: Iterable[str]) -> Iterator[str]:
    r"""Yield *secrets*, also with a byte for each letter of Latin-1: `\xfc` and `%FC` say that."""
    for secret in secrets:
        spelled = secret.translate(_BYTES)
        yield secret
        if spelled != secret and _count_bytes(spelled) >= _SHORTEST:
            yield spelled


def _count_bytes(secret: str) -> int:
    return len(secret.encode(errors="surrogateescape"))


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
    """Return what encodes *data* wherever it stands in a text, and at the end of a text."""
    forms = set()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data)
        # Six bits a character: the first and the last may share bits with what is around.
        start, end = -(-8 * before // 6), 8 * (before + len(data)) // 6
        for form in (encoded[start:end], encoded[start:], encoded[start:].rstrip(b"=")):
            if len(form) >= _SHORTEST:
                forms |= {form, form.translate(_URL_SAFE)}
    return forms


# Mask the secrets of the environment in texts that are stored.
#
# Every occurrence is replaced whole, also where two secrets overlap, in whatever spelling
# the forms above read, and where a line break cuts it; all else is unchanged, byte for byte.

MASK = "[masked]"

_NAME = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|_PASS|_PWD|_PAT|_AUTH|KEY_ID)"
    r"(?:_?\d{1,2})?$",
    re.IGNORECASE,
)

# `scheme://user:password@host`, in any variable.
_URL_PASSWORD = re.compile(r"\w://[^\s/:@]*:([^\s/@]+)@")

# Shorter ones occur in any text by chance.
_SHORTEST_LINE = 16

# `changeme`, `Disabled`: words and numbers are common settings, and would be masked in prose.
_WORD = re.compile(r"(?:[a-z]{1,15}|[A-Z]{1,15}|[A-Z][a-z]{1,14}|[0-9]{1,11})")
# A key in base64 may begin with `/`, too: it has a longer word than the names of directories above.
_PLACE = re.compile(r"(?:~/|\.{1,2}/|/(?![A-Za-z0-9]{20}|.*[^\w ./:@~-])|[A-Za-z]:\\|file:)")
_ARMOUR = "-----"


def find_secrets(environ: Mapping[str, str], also: Collection[str] = ()) -> tuple[str, ...]:
    """Return the values in *environ* that look like secrets, and the lines of multi-line values.

    A variable counts if its name ends as names of keys do or is one of *also*, unless its value is
    short, a common word or the path of a file; and so does the password in a URL.
    """
    found: set[str] = set()
    for name, value in environ.items():
        found |= {each for each in _URL_PASSWORD.findall(value) if _is_secret(each)}
        if (name in also or _NAME.search(name)) and _is_secret(value.strip()):
            lines = {line.strip() for line in value.splitlines()}
            long = {line for line in lines if len(line) >= _SHORTEST_LINE}
            found |= {value.strip()} | {line for line in long if not line.startswith(_ARMOUR)}
    return tuple(sorted(found))


def is_secret_name(name: str) -> bool:
    return _NAME.search(name) is not None


def mask(text: str, secrets: Sequence[str]) -> str:
    return in_bytes(text, lambda data: mask_bytes(data, secrets))


def in_bytes(text: str, change: Callable[[bytes], bytes]) -> str:
    """Return *text* with *change* made to its bytes; the same object if it changes nothing."""
    try:
        data, errors = text.encode(), "replace"
    except UnicodeEncodeError:
        data, errors = text.encode(errors="surrogatepass"), "surrogatepass"
    changed = change(data)
    return text if changed is data else changed.decode(errors=errors)


def mask_bytes(output: bytes, secrets: Sequence[str]) -> bytes:
    """Return *output* masked; bytes that are not UTF-8 are unchanged."""
    return replace_spans(output, find_spans(output, _finder(secrets))) if secrets else output


def replace_spans(data: bytes, spans: Sequence[Span]) -> bytes:
    """Return *data* with *spans*, sorted, masked; the same object if there are none."""
    if not spans:
        return data
    parts: list[bytes] = []
    position = -1
    for start, end in spans:
        if start > position:
            # Spans that touch or overlap are one.
            parts += [data[max(position, 0) : start], MASK.encode()]
        position = max(position, end)
    return b"".join([*parts, data[position:]])


def mask_value(value: Any, secrets: Sequence[str]) -> Any:
    """Return a JSON value with all its texts masked, and the keys of its objects."""
    return change_texts(value, lambda text: mask(text, secrets)) if secrets else value


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with *change* made to all texts and keys; equal keys get numbers."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [change_texts(each, change) for each in value]
    if not isinstance(value, dict):
        return value
    changed: dict[str, Any] = {}
    for name, each in value.items():
        key = change(name)
        if key != name:
            number, plain = 2, key
            while key in changed or key in value:
                number, key = number + 1, f"{plain} {number}"
        changed[key] = change_texts(each, change)
    return changed


def find_unsettled(output: bytes, secrets: Sequence[str]) -> int:
    """Return where in *output* an unfinished secret may begin, which later output would complete.

    What is before that place can be masked and forwarded.
    """
    forms = find_forms(tuple(secrets))
    # A line that has ended is not held back.
    begun = find_spans(output, lambda reading: _find_begun(reading, forms), joined=False)
    place = begun[0][0] if begun else len(output)
    # Cut in two, a secret in which another secret may begin would be found in neither part.
    for start, end in reversed(find_spans(output, _finder(secrets))):
        if start < place < end:
            place = start
    return place


def _find_begun(reading: bytes, forms: Collection[bytes]) -> Iterator[Span]:
    """Yield from where on *reading* may be the beginning of a form."""
    whole = as_form(cut_half(reading))
    if len(whole) < len(reading):
        yield len(whole), len(reading)
    for form in forms:
        start = whole.find(form[:1], max(0, len(whole) - len(form) + 1))
        while start >= 0:
            if form.startswith(whole[start:]):
                yield start, len(reading)
                break
            start = whole.find(form[:1], start + 1)


def _finder(secrets: Sequence[str]) -> Callable[[bytes], Iterator[Span]]:
    forms = find_forms(tuple(secrets))

    def find(reading: bytes) -> Iterator[Span]:
        text = as_form(reading)
        for form in forms:
            start = text.find(form)
            while start >= 0:
                yield start, start + len(form)
                start = text.find(form, start + 1)

    return find


def _is_secret(value: str) -> bool:
    return (
        _count_bytes(value) >= _SHORTEST and not _WORD.fullmatch(value) and not _PLACE.match(value)
    )


# Mask text that has the shape of a key, whatever its origin, and in whatever spelling.
#
# Each shape is too long and odd for prose; all other text is unchanged. Secrets known from the
# environment are masked by value (masking.py). Source: the prefixes that GitHub's secret scanning
# lists for its partners' keys.

# A word begins here, also behind a colour or an erased line (`grep --color`).
_EDGE = r"(?:\b|(?<=[\d\[][mK]))"

# What is looked at in vain from many places has a bound: agents write what they like.
_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    rf"|{_EDGE}(?:"
    # OpenAI, Anthropic, OpenRouter, DeepSeek; Stripe; Groq, xAI, Replicate, Perplexity.
    r"sk-(?=[\w-]{0,99}[0-9])[\w-]{16,}"
    r"|[sr]k_(?:live|test)_\w{16,}"
    r"|(?:gsk_|xai-|r8_|pplx-)\w{20,}"
    # GitHub, GitLab, Slack, npm, PyPI, Hugging Face.
    r"|(?:gh[opsur]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,})"
    r"|xox[abeoprs]-[\w-]{10,}"
    r"|(?:npm_\w{30,}|pypi-[\w-]{30,}|hf_\w{30,})"
    # Amazon, Google.
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|AIza[\w-]{35}"
    # A JSON web token: two objects and a signature in base64url.
    r"|eyJ[\w-]{8,3000}+\.eyJ[\w-]{8,}\.[\w-]{8,}"
    r")",
    re.DOTALL,
)

# Only a part of these is the key; the rest names its owner.
_AFTER = re.compile(
    rf"{_EDGE}(?:"
    r"(?P<keep>Bearer[ ]+)[\w.~+/-]{16,}=*"
    r"|(?P<name>[A-Z][A-Z0-9_]{0,99}(?:KEY|TOKEN|SECRET|PASSWORD)=)[^\s'\"]{8,}"
    r")|(?P<user>\w://[^\s/:@]*:)[^\s/@]+(?=@)"
)

# Each shape has one of these; most texts of an event have none.
_HINT = re.compile(r"[-_=]|AKIA|ASIA|AIza|eyJ|Bearer|://")

# And one of these, which takes longer to see, but not as long as the shapes.
_HINTS = (
    "sk-", "k_live_", "k_test_", "gsk_", "xai-", "r8_", "pplx-", "gho_", "ghp_", "ghs_", "ghu_",
    "ghr_", "github_pat_", "glpat-", "xox", "npm_", "pypi-", "hf_", "AKIA", "ASIA", "AIza", "eyJ",
    "PRIVATE KEY-----", "Bearer ", "KEY=", "TOKEN=", "SECRET=", "PASSWORD=", "://",
)  # fmt: skip

_PATTERNS = tuple(re.compile(each.pattern.encode(), re.DOTALL) for each in (_KEY, _AFTER))
_ENCODES = re.compile(r"[\\%&*`~]")


def mask_keys(text: str) -> str:
    """Return *text* with everything replaced that looks like a key, or reads like one."""
    if _may_have(text):
        text = _KEY.sub(MASK, text)
        text = _AFTER.sub(lambda found: f"{found[found.lastgroup or 0]}{MASK}", text)
    return in_bytes(text, _mask_encoded) if _ENCODES.search(text) else text


def _may_have(text: str) -> bool:
    return _HINT.search(text) is not None and any(hint in text for hint in _HINTS)


def _mask_encoded(data: bytes) -> bytes:
    """Return *data* with what reads like a key masked; lines are not joined for words of prose."""
    reading = read_all(data, joined=False)[-1]
    if reading == data or not _may_have(reading.decode(errors="replace")):
        return data

    def find(each: bytes) -> Iterator[Span]:
        for pattern in _PATTERNS if each == reading else ():
            for found in pattern.finditer(each):
                yield found.end(found.lastgroup) if found.lastgroup else found.start(), found.end()

    return replace_spans(data, find_spans(data, find, joined=False))


# `password` and `apiKey`, but not `tokens`, `passwordLength`, or the `key` of an issue.
_SECRET_MEMBER = re.compile(
    r"(?:(?:password|passwd|pwd|passphrase|secret|credential"
    r"|(?:api|access|secret|private|auth|signing|encryption|ssh)key)s?|token|authorization)\d{0,2}$"
)
_NO_LETTER = re.compile(r"[^a-z0-9]")
_LONGEST_NAME = 40


def mask_keys_in(value: Any) -> Any:
    """Return a JSON value with its texts and keys masked; under a secret's name numbers as well."""
    return change_texts(_mask_members(value, is_secret=False), mask_keys)


def _mask_members(value: Any, *, is_secret: bool) -> Any:
    if isinstance(value, dict):
        inner = {}
        for name, each in value.items():
            plain = _NO_LETTER.sub("", name.lower()) if len(name) <= _LONGEST_NAME else ""
            below = is_secret or _SECRET_MEMBER.search(plain) is not None
            inner[name] = _mask_members(each, is_secret=below)
        return inner
    if isinstance(value, list):
        return [_mask_members(each, is_secret=is_secret) for each in value]
    is_telling = value != "" and not isinstance(value, bool | None)
    return MASK if is_secret and is_telling else value


# Fingerprints of secrets: find a secret in a text without knowing it.
#
# A fingerprint has the length and a salted hash of the secret, with which each window of that
# length is compared, and eight bits of its beginning, which say where a comparison pays. A secret
# has one fingerprint (more, if it is encoded or has letters of Latin-1), not one for each
# spelling: their eight bits together would tell much of its beginning. So a text is searched as it
# is, and decoded from JSON, URLs, base64 and hexadecimal.

SALT_BYTES = 16

_HASH_BYTES = 16

# No secret is shorter (masking.py).
_BEGINNING = 8

# In base64, eight bytes have ten characters that they share with no other byte.
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{10,}")
_HEX = re.compile(rb"[0-9a-fA-F]{16,}")


class Fingerprint(NamedTuple):
    beginning: int
    """Eight bits of a hash of its first eight bytes."""

    length: int
    """In bytes."""

    digest: str


class Fingerprints(NamedTuple):
    salt: bytes
    prints: frozenset[Fingerprint]

    def without(self, secrets: Sequence[str]) -> "Fingerprints":
        known = take_fingerprints(secrets, self.salt)
        return self._replace(prints=self.prints - known.prints)


def take_fingerprints(secrets: Sequence[str], salt: bytes) -> Fingerprints:
    """Return the fingerprints of *secrets*; a secret that is too short has no fingerprint."""
    values = (each.encode(errors="surrogateescape") for each in _spell_letters(secrets))
    readings = {each for value in values for each in (value, read_all(value)[-1])}
    prints = (
        Fingerprint(_hash_beginnings(value[:_BEGINNING], salt)[0], len(value), _hash(value, salt))
        for value in readings
        if len(value) >= _BEGINNING
    )
    return Fingerprints(salt, frozenset(prints))


def find_secrets_in(data: bytes, fingerprints: Fingerprints) -> tuple[str, ...]:
    """Return the secrets in *data* that have a fingerprint, in whatever encoding."""
    if not fingerprints.prints:
        return ()
    found: set[bytes] = set()
    for reading in read_all(data):
        # As forms write them, a plus is a space.
        for text in {reading, as_form(reading)}:
            found |= _find(text, fingerprints)
            found |= _find(_decode_base64(text), fingerprints)
            found |= _find(_decode_hex(text), fingerprints)
    return tuple(sorted(each.decode(errors="surrogateescape") for each in found))


def _decode_base64(text: bytes) -> bytes:
    """Return what the words of *text* encode, whichever of four characters a group begins with."""
    groups = (word[start:] for word in _BASE64.findall(text) for start in range(4))
    padded = (group + b"A" * (-len(group) % 4) for group in groups)
    return b"\0".join(map(base64.urlsafe_b64decode, padded))


def _decode_hex(text: bytes) -> bytes:
    words = _HEX.findall(text)
    pairs = (
        word[start : len(word) - (len(word) - start) % 2] for word in words for start in (0, 1)
    )
    return b"\0".join(bytes.fromhex(each.decode()) for each in pairs)


def format_fingerprints(fingerprints: Fingerprints) -> str:
    return json.dumps({"salt": fingerprints.salt.hex(), "prints": sorted(fingerprints.prints)})


def parse_fingerprints(document: str) -> Fingerprints:
    """Return the fingerprints in a document of ``format_fingerprints``."""
    value = json.loads(document)
    prints = (Fingerprint(bytes([b])[0], int(n), str(digest)) for b, n, digest in value["prints"])
    return Fingerprints(bytes.fromhex(value["salt"]), frozenset(prints))


def _find(data: bytes, fingerprints: Fingerprints) -> set[bytes]:
    salt, prints = fingerprints
    by_beginning = defaultdict(set)
    for each in prints:
        by_beginning[each.beginning].add((each.length, each.digest))
    beginnings = _hash_beginnings(data, salt)
    pattern = b"[%s]" % b"".join(re.escape(bytes([each])) for each in by_beginning)
    return {
        data[place : place + length]
        for place in (found.start() for found in re.finditer(pattern, beginnings))
        for length, digest in by_beginning[beginnings[place]]
        if place + length <= len(data) and _hash(data[place : place + length], salt) == digest
    }


def _hash_beginnings(data: bytes, salt: bytes) -> bytes:
    """Return a hash of a byte of each eight bytes in *data*, by the place where they begin.

    The hash is the exclusive or of a table's value for each byte (tabulation hashing), which long
    integers have for all places at once.
    """
    size = len(data) - _BEGINNING + 1
    if size <= 0:
        return b""
    total = 0
    for offset, table in enumerate(_build_tables(salt)):
        total ^= int.from_bytes(data[offset : offset + size].translate(table), "big")
    return total.to_bytes(size, "big")


@lru_cache(maxsize=8)
def _build_tables(salt: bytes) -> tuple[bytes, ...]:
    return tuple(shake_256(salt + bytes([each])).digest(256) for each in range(_BEGINNING))


def _hash(value: bytes, salt: bytes) -> str:
    return blake2b(value, key=salt, digest_size=_HASH_BYTES).hexdigest()
