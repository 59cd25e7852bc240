"""Mask the secrets of the environment in texts that are stored.

Every occurrence is replaced whole, also where two secrets overlap; all else is unchanged, byte for
byte.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, AnyStr
from urllib.parse import quote

MASK = "[masked]"

_NAME = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|_PASS|_PAT|_AUTH|KEY_ID)"
    r"(?:_?\d{1,2})?$",
    re.IGNORECASE,
)

# `scheme://user:password@host`, in any variable.
_URL_PASSWORD = re.compile(r"\w://[^\s/:@]*:([^\s/@]+)@")

# Shorter ones occur in any text by chance.
_SHORTEST = 8
_SHORTEST_LINE = 16

# `changeme`, `disabled`: words of one case, and numbers, are common settings, and would be masked
# in prose.
_WORD = re.compile(r"(?:[a-z]{1,15}|[A-Z]{1,15}|[A-Z][a-z]{1,14}|[0-9]{1,11})")
_PLACE = re.compile(r"(?:~|\.{0,2}/|[A-Za-z]:\\|file:)")
_ARMOUR = "-----"


def find_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values in *environ* that look like secrets, and the lines of those with several.

    A variable counts if its name ends as names of keys do, unless its value is short, a common word
    or the path of a file; and so does the password in a URL.
    """
    found: set[str] = set()
    for name, value in environ.items():
        found.update(each for each in _URL_PASSWORD.findall(value) if _is_secret(each))
        if _NAME.search(name) and _is_secret(value.strip()):
            found.add(value.strip())
            lines = [line.strip() for line in value.splitlines()]
            found.update(
                line
                for line in lines
                if len(line) >= _SHORTEST_LINE and not line.startswith(_ARMOUR)
            )
    return tuple(sorted(found))


def is_secret_name(name: str) -> bool:
    """Check whether variables of this name usually hold secrets."""
    return _NAME.search(name) is not None


def mask(text: str, secrets: Sequence[str]) -> str:
    """Return *text* with each of *secrets* replaced, as it is, in JSON, or in a URL."""
    spans = sorted(span for form in _forms(secrets) for span in _occurrences(text, form))
    if not spans:
        return text
    parts = []
    position = 0
    for start, end in _merge(spans):
        parts += [text[position:start], MASK]
        position = end
    return "".join([*parts, text[position:]])


def mask_value(value: Any, secrets: Sequence[str]) -> Any:
    """Return a JSON value with all its texts masked; keys of objects are not."""
    if not secrets:
        return value
    if isinstance(value, str):
        return mask(value, secrets)
    if isinstance(value, dict):
        return {name: mask_value(each, secrets) for name, each in value.items()}
    if isinstance(value, list):
        return [mask_value(each, secrets) for each in value]
    return value


def mask_bytes(output: bytes, secrets: Sequence[str]) -> bytes:
    """Return *output* masked; bytes that are not UTF-8 are unchanged."""
    text = output.decode(errors="surrogateescape")
    masked = mask(text, secrets)
    return output if masked is text else masked.encode(errors="surrogateescape")


def find_unsettled(output: bytes, secrets: Sequence[str]) -> int:
    """Return where in *output* an unfinished secret may begin, which later output would complete.

    What is before that place can be masked and forwarded; it is the end if nothing has begun.
    """
    forms = [form.encode(errors="surrogateescape") for form in _forms(secrets)]
    place = min((_find_beginning(output, form) for form in forms), default=len(output))
    found = [span for form in forms for span in _occurrences(output, form)]
    # Cut in two, a secret in which another one may begin would be found in neither part.
    for start, end in sorted(found, reverse=True):
        if start < place < end:
            place = start
    return place


def _find_beginning(output: bytes, form: bytes) -> int:
    """Return where *output* ends in the first characters of *form*; its end, if it does not."""
    start = output.find(form[:1], max(0, len(output) - len(form) + 1))
    while start >= 0:
        if form.startswith(output[start:]):
            return start
        start = output.find(form[:1], start + 1)
    return len(output)


def _is_secret(value: str) -> bool:
    return len(value) >= _SHORTEST and not _WORD.fullmatch(value) and not _PLACE.match(value)


def _forms(secrets: Sequence[str]) -> set[str]:
    """Return the spellings of the secrets in a text."""
    forms: set[str] = set()
    for secret in secrets:
        forms |= {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        forms |= {quote(secret, safe=""), quote(secret)}
    return forms


def _occurrences(text: AnyStr, form: AnyStr) -> Iterator[tuple[int, int]]:
    start = text.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + 1)


def _merge(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join spans that touch or overlap; they are sorted by their beginning."""
    start, end = spans[0]
    for next_start, next_end in spans[1:]:
        if next_start > end:
            yield start, end
            start, end = next_start, next_end
        end = max(end, next_end)
    yield start, end
