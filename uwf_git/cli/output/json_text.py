"""JSON as the command line prints it: valid in every locale, with controls escaped."""

import json
import re
from collections.abc import Callable
from typing import Any

# JSON allows these unescaped, but no encoding takes a lone surrogate, terminals obey DEL, C1
# controls and marks of direction (https://trojansource.codes), and some readers end a line at
# U+2028. They occur only inside strings, where an escape is the same value.
_UNPRINTABLE = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"


def render_json(
    value: Any,
    *,
    pretty: bool = False,
    ascii_only: bool = False,
    default: Callable[[Any], Any] | None = None,
) -> str:
    """Write *value* as one JSON text with a final newline; on one line unless *pretty*.

    *ascii_only* is for streams that are not UTF-8. *default* converts types that JSON lacks.
    """
    text = json.dumps(
        value,
        allow_nan=False,
        default=default,
        ensure_ascii=ascii_only,
        indent=2 if pretty else None,
        separators=None if pretty else (",", ":"),
    )
    if text.isascii() and "\x7f" not in text:
        return text + "\n"
    return re.sub(_UNPRINTABLE, _escape, text) + "\n"


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
