"""Strict JSON: what agents print, read without a second opinion.

Owns: the one reading of JSON text that comes from agents.
Knows nothing of: what the value means.
Always true: a value that parsed is in canonical form and can stand in a node; no key was lost to
a duplicate; and whatever the text is, the answer is a value or ``BadJson``.
"""

import json
from typing import Any

from uwf_git.errors import AgentFailed
from uwf_git.model.canonical import NotCanonical, canonical


class BadJson(AgentFailed):
    """The text is not JSON that a node could hold."""

    code = "bad-json"

    def __init__(self, problem: str) -> None:
        super().__init__(f"not JSON: {problem}", problem=problem)
        self.problem = problem


def parse_json(text: str) -> Any:
    """Read *text* as one JSON value, in the form that nodes hold.

    Raises:
        BadJson: it is none, or holds what JSON does not have: a duplicate key, NaN, a lone
            surrogate, a number beyond all floats, more levels than a node may have.
    """
    value, end = parse_json_at(text, 0)
    rest = text[end:].lstrip()
    if rest:
        line = text.count("\n", 0, len(text) - len(rest)) + 1
        raise BadJson(f"something follows the value on line {line}")
    return value


def parse_json_at(text: str, start: int) -> tuple[Any, int]:
    """Read the JSON value that begins at *start*, and tell where it ends.

    Raises:
        BadJson: as ``parse_json``.
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
        # Python refuses to read integers of more than 4,300 digits, and says no more than that.
        raise BadJson("a number has too many digits") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise BadJson(f"the key {key!r:.60} is there twice")
        fields[key] = value
    return fields


def _parse_constant(name: str) -> float:
    # Kept for a moment, so that the error can say where it stands.
    return float(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_parse_constant)
