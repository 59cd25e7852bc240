"""The options for agents and for the limits of a thread."""

import json
import re
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, NamedTuple

import click

from uwf_git.cli.app.parameters import Input, text_argument
from uwf_git.model.limits import LIMITS, find_limit_problem
from uwf_git.model.text import parse_duration_ms

# The option `--agent`: ``[ROLE=]CMD``, ``[ROLE=]{…}`` with settings, or ``[ROLE=]@FILE``.
#
# A file is read here, once: an agent that changes it cannot change what a run still plays.

_FILE = re.compile(r"((?:[^\s/=\"'\\]+=)?)@(.+)", re.DOTALL)

METAVAR = "[ROLE=]CMD|{…}|@FILE"


def agents_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the argument ``agents: tuple[str, ...]`` to a verb, with the content of files."""

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


# The options that limit a thread: `--max-steps` and the like.
#
# An option that is not given changes nothing; `none`, or the `--no-` form, removes the limit.

_NONE = "none"
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_WHOLE = re.compile(r"[0-9]{1,16}")


class LimitOption(NamedTuple):
    """A limit as it was typed."""

    value: float | None
    """As it is stored; None is no limit."""


class LimitWords(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """The type of an option that takes a limit; its value is a `LimitOption`."""

    name = "limit"

    def __init__(self, limit: str) -> None:
        self._limit, self._unit = limit, LIMITS[limit].unit

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> LimitOption:
        """Parse the text."""
        if isinstance(value, LimitOption):
            return value
        text = str(value).strip()
        if text == _NONE:
            return LimitOption(None)
        number = _read(self._unit, text)
        if number is None or find_limit_problem(self._limit, number) is not None:
            self.fail(f"{text[:40]!r} is not {_WORDS[self._unit]}; 'none' is no limit", param, ctx)
        return LimitOption(number)


_WORDS = {
    "count": "a whole number, 1 or more",
    "ms": "a time above 0 and at most a year: type seconds, or as 30m, 2h, 1d",
    "usd": "a number of US dollars above 0",
}


def limit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument ``limits: dict[str, Any]`` to a verb: the typed limits; None removes one."""

    def with_limits(*args: Any, **given: Any) -> Any:
        limits: dict[str, Any] = {}
        for name, limit in LIMITS.items():
            typed, is_taken = given.pop(name), given.pop(_no(name))
            if typed is not None and is_taken:
                told = f"{limit.option} and {_with_no(limit.option)} exclude each other"
                raise click.UsageError(told)
            if typed is not None or is_taken:
                limits[name] = None if is_taken else typed.value
        return function(*args, limits=limits, **given)

    wrapped: Any = update_wrapper(with_limits, function)
    for name, limit in reversed(LIMITS.items()):
        without = click.option(_with_no(limit.option), _no(name), is_flag=True, hidden=True)
        wrapped = click.option(
            limit.option,
            *limit.also,
            name,
            type=LimitWords(name),
            metavar=limit.metavar,
            help=limit.about,
        )(without(wrapped))
    made: Callable[..., Any] = wrapped
    return made


def _read(unit: str, text: str) -> float | None:
    if unit == "ms":
        return parse_duration_ms(text)
    if unit == "usd":
        return float(text) if _NUMBER.fullmatch(text) else None
    return int(text) if _WHOLE.fullmatch(text) else None


def _with_no(option: str) -> str:
    return f"--no-{option.removeprefix('--')}"


def _no(name: str) -> str:
    return f"no_{name}"
