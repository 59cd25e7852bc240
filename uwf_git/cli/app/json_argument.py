"""Read JSON from arguments and files, strictly.

What no node can hold is an error, such as a duplicate key, as is bad syntax.
"""

from typing import Any

from uwf_git.agents.command_line import BadJson, parse_strict_json
from uwf_git.cli.app.parameters import Input, text_argument
from uwf_git.errors import BadUsage
from uwf_git.model.node import NotCanonical


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
        return parse_strict_json(text)
    except BadJson as error:
        # It is JSON, of a value that no node holds, which has an error of its own.
        if isinstance(error.__cause__, NotCanonical):
            raise error.__cause__ from None
        raise not_json(name, error.problem) from None
