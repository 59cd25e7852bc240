"""Mask the secrets of the environment in texts that are stored.

Every occurrence is replaced whole, also where two secrets overlap, in whatever spelling
secret_forms.py reads, and where a line break cuts it; all else is unchanged, byte for byte.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from uwf_git.engine.secret_forms import Span, as_form, cut_half, find_forms, find_spans

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
    """Return *text* with each of *secrets* replaced, in every spelling."""
    if not secrets:
        return text
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
    parts = []
    position = 0
    for start, end in _merge(spans):
        parts += [data[position:start], MASK.encode()]
        position = end
    return b"".join([*parts, data[position:]])


def mask_value(value: Any, secrets: Sequence[str]) -> Any:
    """Return a JSON value with all its texts masked, and the keys of its objects."""
    return change_texts(value, lambda text: mask(text, secrets)) if secrets else value


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with *change* made to each text and each key of an object.

    Keys that become equal are numbered: no member is lost.
    """
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

    What is before that place can be masked and forwarded; it is the end if nothing has begun.
    """
    forms = find_forms(tuple(secrets))
    # A line that has ended is not held back.
    begun = find_spans(output, lambda reading: _find_begun(reading, forms), joined=False)
    place = begun[0][0] if begun else len(output)
    # Cut in two, a secret in which another one may begin would be found in neither part.
    for start, end in reversed(find_spans(output, _finder(secrets))):
        if start < place < end:
            place = start
    return place


def _find_begun(reading: bytes, forms: Collection[bytes]) -> Iterator[Span]:
    """Yield from where on *reading* may be the beginning of one of *forms*."""
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
        return (span for form in forms for span in _occurrences(text, form))

    return find


def _is_secret(value: str) -> bool:
    return len(value) >= _SHORTEST and not _WORD.fullmatch(value) and not _PLACE.match(value)


def _occurrences(text: bytes, form: bytes) -> Iterator[Span]:
    start = text.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + 1)


def _merge(spans: Sequence[Span]) -> Iterator[Span]:
    """Join spans that touch or overlap; they are sorted by their beginning."""
    start, end = spans[0]
    for next_start, next_end in spans[1:]:
        if next_start > end:
            yield start, end
            start, end = next_start, next_end
        end = max(end, next_end)
    yield start, end
