"""Read the plainest YAML without PyYAML: lines of `key: value`, whose values are words or numbers.

Most agents print such front matter, and importing PyYAML takes a tenth of a cold step. A property
test compares both readers.
"""

import math
import re

from uwf_git.model.yaml.render import resolve_plain

_MOST_CHARACTERS = 64 * 1024

# Neither has a character that means something in YAML where it stands.
_KEY = r"([A-Za-z][A-Za-z0-9_]{0,99})"
_VALUE = r"(-?[A-Za-z0-9](?:[A-Za-z0-9 ._/+-]*[A-Za-z0-9])?)"
_LINE = re.compile(f"{_KEY}: {_VALUE}")


def read_plain(source: str) -> dict[str, str | float | bool | None] | None:
    """Return the value of *source*; None if it may be more than plain, and the reader is needed."""
    if len(source) > _MOST_CHARACTERS:
        return None
    fields: dict[str, str | float | bool | None] = {}
    for line in source.removesuffix("\n").split("\n"):
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        key, value = match[1], resolve_plain(match[2])
        is_number = isinstance(value, float) and not math.isfinite(value)
        if is_number or key in fields or not isinstance(resolve_plain(key), str):
            return None
        fields[key] = value
    return fields
