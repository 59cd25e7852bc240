"""Mask the secrets of the environment in texts that are stored.

Every occurrence is replaced whole, also where two secrets overlap, in each spelling of
secret_forms.py, and where a line break cuts it; all else is unchanged, byte for byte.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, AnyStr, NamedTuple

from uwf_git.engine.secret_forms import find_forms

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

# As it is, indented, or within a JSON text.
_LINE_BREAK = re.compile(r"\r?\n[ \t]*|(?:\\r)?\\n")


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
    forms = find_forms(tuple(secrets))
    spans = [span for form in forms for span in _occurrences(text, form)]
    joined = unwrap(text)
    if joined.breaks:
        spans += [joined.locate(span) for form in forms for span in _occurrences(joined.text, form)]
    if not spans:
        return text
    parts = []
    position = 0
    for start, end in _merge(sorted(spans)):
        parts += [text[position:start], MASK]
        position = end
    return "".join([*parts, text[position:]])


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


class Unwrapped(NamedTuple):
    """A text without its line breaks."""

    text: str

    breaks: Sequence[int]
    """Where in *text* the line breaks were."""

    removed: Sequence[int]
    """How many characters were removed up to each of them; 0 comes first."""

    def locate(self, span: tuple[int, int]) -> tuple[int, int]:
        """Return where in the whole text a span of *text* is."""
        start, end = span
        return (
            start + self.removed[bisect_right(self.breaks, start)],
            end + self.removed[bisect_left(self.breaks, end)],
        )


def unwrap(text: str) -> Unwrapped:
    """Join the lines of *text*, as `base64` and terminals wrap them."""
    parts: list[str] = []
    breaks: list[int] = []
    removed = [0]
    position = 0
    for found in _LINE_BREAK.finditer(text):
        parts.append(text[position : found.start()])
        breaks.append(found.start() - removed[-1])
        removed.append(removed[-1] + found.end() - found.start())
        position = found.end()
    return Unwrapped("".join([*parts, text[position:]]), breaks, removed)


def mask_bytes(output: bytes, secrets: Sequence[str]) -> bytes:
    """Return *output* masked; bytes that are not UTF-8 are unchanged."""
    text = output.decode(errors="surrogateescape")
    masked = mask(text, secrets)
    return output if masked is text else masked.encode(errors="surrogateescape")


def find_unsettled(output: bytes, secrets: Sequence[str]) -> int:
    """Return where in *output* an unfinished secret may begin, which later output would complete.

    What is before that place can be masked and forwarded; it is the end if nothing has begun.
    """
    forms = [form.encode(errors="surrogateescape") for form in find_forms(tuple(secrets))]
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
