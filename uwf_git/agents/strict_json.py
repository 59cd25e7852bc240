"""JSON that agents print, read strictly: no duplicate keys, nothing that a node could not hold.

A value that was parsed is in canonical form.
"""

import json
from typing import Any

from uwf_git.errors import AgentFailed
from uwf_git.model.canonical import NotCanonical, canonical


class BadJson(AgentFailed):
    """The text is not JSON that a node can hold."""

    code = "bad-json"

    def __init__(self, problem: str) -> None:
        super().__init__(f"not JSON: {problem}", problem=problem)
        self.problem = problem


def parse_strict_json(text: str) -> Any:
    """Return *text*, one JSON value, in canonical form.

    Raises:
        BadJson: it is not JSON, or has a duplicate key, NaN, a lone surrogate, a number out of
            range, or more levels than a node may have.
    """
    value, end = parse_strict_json_at(text, 0)
    rest = text[end:].lstrip()
    if rest:
        line = text.count("\n", 0, len(text) - len(rest)) + 1
        raise BadJson(f"there is more text after the value on line {line}")
    return value


def parse_strict_json_at(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that begins at *start*, and where it ends.

    Raises:
        BadJson: as ``parse_strict_json``.
    """
    while start < len(text) and text[start] in " \t\r\n":
        start += 1
    try:
        value, end = _DECODER.raw_decode(text, start)
        return canonical(value), end
    except json.JSONDecodeError as error:
        problem = f"{error.msg.lower()} (line {error.lineno}, column {error.colno})"
        raise BadJson(problem) from None
    except NotCanonical as error:
        raise BadJson(error.message) from None
    except RecursionError:
        raise BadJson("it is nested too deeply") from None
    except ValueError:
        # Python refuses integers of more than 4,300 digits.
        raise BadJson("a number has too many digits") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise BadJson(f"the key {key!r:.60} is there twice")
        fields[key] = value
    return fields


def _parse_constant(name: str) -> float:
    # Refused by `canonical`, whose error says where it is.
    return float(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_parse_constant)
