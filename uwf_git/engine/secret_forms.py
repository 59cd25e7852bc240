"""The spellings in which a secret stands in a text: as it is, in JSON, in a URL, in base64."""

import base64
import json
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote, quote_plus

# What is left as it is: by RFC 3986, in a path, by JavaScript's encodeURIComponent and encodeURI.
_UNQUOTED = ("", "/", "!'()*", "!'()*;,/?:@&=+$#")

# The second alphabet of base64 (RFC 4648).
_URL_SAFE = str.maketrans("+/", "-_")

# Shorter ones stand in any text by chance.
_SHORTEST = 8


@lru_cache(maxsize=64)
def find_forms(secrets: tuple[str, ...]) -> frozenset[str]:
    """Return all spellings of *secrets*."""
    return frozenset(form for secret in secrets for form in _spell(secret))


def _spell(secret: str) -> Iterator[str]:
    # A variable need not be UTF-8; what is no text of it shows as U+FFFD in a reply.
    data = secret.encode(errors="surrogateescape")
    plain = {secret, data.decode(errors="replace"), *_in_base64(data)}
    for each in plain:
        yield each
        for is_ascii in (True, False):
            quoted = json.dumps(each, ensure_ascii=is_ascii)[1:-1]
            yield quoted
            # PHP's spelling.
            yield quoted.replace("/", "\\/")
        yield from _in_url(each)


def _in_url(text: str) -> Iterator[str]:
    data = text.encode(errors="surrogateescape")
    for quoted in (*(quote(data, safe=safe) for safe in _UNQUOTED), quote_plus(data)):
        yield quoted
        yield _with_small_digits(quoted)


def _with_small_digits(quoted: str) -> str:
    first, *others = quoted.split("%")
    return "%".join([first, *(each[:2].lower() + each[2:] for each in others)])


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield what encodes *data* wherever it stands in a text, and at the end of one."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode()
        # Six bits a character: the first and the last may share bits with what is around.
        start, end = -(-8 * before // 6), 8 * (before + len(data)) // 6
        for form in (encoded[start:end], encoded[start:], encoded[start:].rstrip("=")):
            if len(form) >= _SHORTEST:
                yield from (form, form.translate(_URL_SAFE))
