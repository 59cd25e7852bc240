"""The option `--agent`: ``[ROLE=]CMD``, ``[ROLE=]{…}`` with settings, or ``[ROLE=]@FILE``.

A file is read here, once: an agent that changes it cannot change what a run still plays.
"""

import json
import re
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import click

from uwf_git.cli.app.parameters import Input, text_argument

_FILE = re.compile(r"((?:[^\s/=\"'\\]+=)?)@(.+)", re.DOTALL)

METAVAR = "[ROLE=]CMD|{…}|@FILE"


def agents_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the argument ``agents: tuple[str, ...]`` to a verb; files are replaced by their content.

    Raises:
        Refused: one is not UTF-8.
        Refused: a file cannot be used.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def with_agents(*args: Any, agents: tuple[str, ...], **others: Any) -> Any:
            return function(*args, agents=tuple(map(read_agent_option, agents)), **others)

        wrapped: Callable[..., Any] = click.option(
            "--agent", "agents", multiple=True, metavar=METAVAR, help=help_text
        )(update_wrapper(with_agents, function))
        return wrapped

    return decorate


def read_agent_option(text: str) -> str:
    """Return a value of ``--agent`` with the content of the file that it names, as JSON."""
    text_argument(text, "--agent")
    named = _FILE.fullmatch(text)
    if named is None:
        return text
    from uwf_git.model.definition.agents import read_agent_settings  # noqa: PLC0415 (PyYAML: 30 ms, and few name files)

    source = Input(named[2])
    settings = read_agent_settings(source.read_bytes(), name=source.name)
    return named[1] + json.dumps(settings, ensure_ascii=False)
