"""YAML scalars, and writing a JSON value as YAML for people."""

import json
import math
import re
from typing import Any

# YAML scalars: the YAML 1.2 core schema (https://yaml.org/spec/1.2.2/ section 10.3.2).
#
# What the core schema does not name is text: ``no``, ``on``, ``2024-01-01``, ``12:30``; YAML 1.1
# readers turn these into other values.

_WORDS: dict[str, float | bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OCTAL_OR_HEXADECIMAL = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def resolve_plain(text: str) -> str | float | bool | None:
    """Return the value of a plain scalar; beyond JSON an infinity or NaN, to be refused."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _DECIMAL.fullmatch(text):
        return _integer(text)
    if _OCTAL_OR_HEXADECIMAL.fullmatch(text):
        return _fitting(int(text, 0))
    return float(text) if _FLOAT.fullmatch(text) else text


def _integer(text: str) -> int | float:
    # Through float first: int() refuses more than 4,300 digits with an exception of its own.
    nearest = float(text)
    if math.isinf(nearest):
        return nearest
    digits = int(text.lstrip("+-").lstrip("0") or "0")
    return -digits if text[0] == "-" else digits


def _fitting(number: int) -> int | float:
    try:
        float(number)
    except OverflowError:
        return math.inf
    return number


# Write a JSON value as YAML for people: block style, literal blocks, quotes where needed.
#
# ``parse_yaml(render_yaml(value)).value == value``, and other YAML readers, including those of
# YAML 1.1, read the same strings and numbers. PyYAML's emitter is not used: it quotes by YAML 1.1,
# shares equal values through anchors, and gives up literal blocks for text with trailing blanks, as
# agents write it.

# First a letter, digit or a mark that is no indicator of YAML; then anything but the two pairs that
# end a plain scalar, and no blank or colon at the end.
_PLAIN = re.compile(r"[\w./($+^~;=\\](?:[^\s:#]|:(?=\S)|(?<=\S)#|[ ]+(?=[^\s#]))*")

# What YAML 1.1 reads as a boolean, a merge, a number, a time or a date.
_WORD_OF_YAML_1_1 = re.compile(r"(?i:y|n|yes|no|on|off)|=|<<")
_NUMBER_OF_YAML_1_1 = re.compile(r"[-+.]*[0-9][-+.:_0-9a-fA-FxotTzZ ]*")

# Everything that must not occur in a file, that some reader takes for a line break, or that changes
# the direction of writing (https://trojansource.codes). Its complement, up to U+10FFFF, would take
# 4 ms more to compile.
_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\ufeff\ufffe\uffff]"
)

# What is written as an escape where a file is to be ASCII; it has all of the above.
_NOT_ASCII = re.compile(r"[^\t\n -~]")

# A simple key may not be longer than 1,024 characters (YAML 1.2.2 section 7.4.3).
_LONGEST_SIMPLE_KEY = 500


def render_yaml(value: Any, *, ascii_only: bool = False) -> str:
    """Write *value*, which must be JSON, as one YAML document that ends in a newline."""
    lines: list[str] = []
    _put(lines, "", value, _NOT_ASCII if ascii_only else _UNWRITABLE, column=0)
    return "\n".join(lines) + "\n"


def _put(lines: list[str], lead: str, value: Any, escaped: re.Pattern[str], *, column: int) -> None:
    """Write *value* after *lead* (``key:``, ``-`` or nothing); its own lines start at *column*."""
    if isinstance(value, dict | list) and value:
        # After a dash a collection begins on the same line.
        is_item = lead.endswith("-")
        first = f"{lead} " if is_item else " " * column
        lines += [lead] if lead and not is_item else []
        parts = value.items() if isinstance(value, dict) else [(None, each) for each in value]
        for key, item in parts:
            mark = "-" if key is None else f"{_text(key, escaped)}:"
            if len(mark) > _LONGEST_SIMPLE_KEY + 1:
                lines.append(f"{first}? {mark[:-1]}")
                first, mark = " " * column, ":"
            _put(lines, f"{first}{mark}", item, escaped, column=column + 2)
            first = " " * column
        return
    gap = " " if lead else ""
    if not isinstance(value, str):
        # To YAML 1.1, 1e-05 is text.
        written = re.sub(r"^(-?\d)e", r"\1.0e", json.dumps(value, allow_nan=False))
        lines.append(f"{lead}{gap}{written}")
    elif "\n" in value and not value.isspace() and not escaped.search(value):
        _put_literal(lines, f"{lead}{gap}", value, column=max(column, 2))
    else:
        lines.append(f"{lead}{gap}{_text(value, escaped)}")


def _put_literal(lines: list[str], lead: str, text: str, *, column: int) -> None:
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    # Readers guess the indentation from the first line; they cannot if it is blank or indented.
    indentation = "2" if text[0] in " \t\n" else ""
    chomping = "-" if not ends else "" if ends == 1 else "+"
    lines.append(f"{lead}|{indentation}{chomping}")
    pad = " " * column
    lines += [pad + line if line else "" for line in body.split("\n")]
    lines += [""] * (ends - 1)


def _text(text: str, escaped: re.Pattern[str]) -> str:
    if not escaped.search(text) and _is_plain(text):
        return text
    # A JSON string is a double-quoted YAML string, once what YAML forbids is escaped as well.
    quoted = json.dumps(text, ensure_ascii=False)
    return escaped.sub(_escape, quoted)


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"  # noqa: PLR2004 (as YAML has it)


def _is_plain(text: str) -> bool:
    return (
        _PLAIN.fullmatch(text) is not None
        and not text.startswith(("---", "..."))
        and not _WORD_OF_YAML_1_1.fullmatch(text)
        and not _NUMBER_OF_YAML_1_1.fullmatch(text)
        and isinstance(resolve_plain(text), str)
    )


# Read the plainest YAML without PyYAML: lines of `key: value`, whose values are words or numbers.
#
# Most agents print such front matter, and importing PyYAML takes a tenth of a cold step. A
# property test compares both readers.

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
