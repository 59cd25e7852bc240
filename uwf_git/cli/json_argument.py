"""JSON that people and programs hand to a verb.

Owns: reading it strictly, and saying where it is wrong.
Knows nothing of: schemas, nodes.
Always true: what is read is what was written: no key is lost to its twin, no number becomes
infinite, and bad input is an error with its place, however deep or long it is.
"""

import json
import math
from collections import Counter
from typing import Any, NoReturn

from uwf_git.cli.parameters import Input, text_argument
from uwf_git.errors import BadUsage


class NotJson(BadUsage):
    """What should be JSON is not."""

    code = "not-json"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"{name} is not JSON: {problem}",
            hint="strings and keys need double quotes; in a shell, put single quotes around it all",
            source=name,
            problem=problem,
        )


class _Unfit(ValueError):
    """What Python's reader would let through."""


def read_json_argument(text: str, name: str) -> Any:
    """Read a word of the command line as JSON; `-` reads standard input. *name* is for errors.

    Raises:
        NotJson: it is not JSON.
        InputUnreadable, InputTooLarge, NotText: as `Input.read_text`.
    """
    if text == "-":
        return read_json_input(Input("-"))
    return parse_json(text_argument(text, name), name)


def read_json_input(source: Input) -> Any:
    """Read a file, or standard input, as JSON.

    Raises:
        NotJson: it is not JSON.
        InputUnreadable, InputTooLarge, NotText: as `Input.read_text`.
    """
    return parse_json(source.read_text(), source.name)


def parse_json(text: str, name: str) -> Any:
    """Read *text* as JSON; *name* says in errors what it is.

    Raises:
        NotJson: it is not, or it is only to Python (NaN, a key twice, a number without end).
    """
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
        raise NotJson(name, f"{place}: {error.msg[0].lower()}{error.msg[1:]}") from None
    except _Unfit as error:
        raise NotJson(name, str(error)) from None
    except RecursionError:
        raise NotJson(name, "it is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twin = next(key for key, count in counts.items() if count > 1)
        raise _Unfit(f"the key {twin[:60]!r} is there twice")
    return fields


def _refuse_constant(text: str) -> NoReturn:
    raise _Unfit(f"{text} is a number in JavaScript only")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Unfit(f"the number {text[:40]} is too large")
    return number


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        # Python refuses more than 4,300 digits, since reading them takes quadratic time.
        raise _Unfit(f"the number {text[:40]}… is too large") from None
