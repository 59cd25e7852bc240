"""Read JSON from arguments and files, strictly.

A duplicate key or a number beyond a float is an error, as is bad syntax, always with its place.
"""

import json
import math
from collections import Counter
from typing import Any, NoReturn

from uwf_git.cli.app.parameters import Input, text_argument
from uwf_git.errors import BadUsage


def not_json(name: str, problem: str) -> BadUsage:
    """Say that the input is not JSON."""
    return BadUsage(
        f"{name} is not JSON: {problem}",
        code="not-json",
        hint="strings and keys need double quotes; in a shell, put the JSON in single quotes",
        source=name,
        problem=problem,
    )


def read_json_argument(text: str, name: str) -> Any:
    """Read an argument as JSON; `-` reads standard input. *name* is for errors."""
    if text == "-":
        return read_json_input(Input("-"))
    return parse_json_text(text_argument(text, name), name)


def read_json_input(source: Input) -> Any:
    """Read a file, or standard input, as JSON."""
    return parse_json_text(source.read_text(), source.name)


def parse_json_text(text: str, name: str) -> Any:
    """Read *text* as JSON; *name* is for errors."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise not_json(name, f"{place}: {error.msg[0].lower()}{error.msg[1:]}") from None
    except ValueError as error:
        raise not_json(name, str(error)) from None
    except RecursionError:
        raise not_json(name, "it is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twin = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {twin[:60]!r} is duplicated")
    return fields


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is a number in JavaScript only")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        # Python refuses more than 4,300 digits, since reading them takes quadratic time.
        raise ValueError(f"the number {text[:40]}… is too large") from None
