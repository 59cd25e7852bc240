"""The options for agents and for the limits of a thread."""

import json
import re
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, NamedTuple

import click

from uwf_git.cli.app.parameters import Input, text_argument
from uwf_git.model.text import parse_duration_ms
from uwf_git.model.thread import find_limit_problem

# The option `--agent`: ``[ROLE=]CMD``, ``[ROLE=]{…}`` with settings, or ``[ROLE=]@FILE``.
#
# A file is read here, once: an agent that changes it cannot change what a run still plays.

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

    def __init__(self, limit: str, words: str) -> None:
        self._limit, self._words = limit, words

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> LimitOption:
        """Parse the text."""
        if isinstance(value, LimitOption):
            return value
        text = str(value).strip()
        if text == _NONE:
            return LimitOption(None)
        number = _read(self._limit, text)
        if number is None or find_limit_problem(self._limit, number) is not None:
            self.fail(f"{text[:40]!r} is not {self._words}; 'none' is no limit", param, ctx)
        return LimitOption(number)


class _Kind(NamedTuple):
    option: str
    metavar: str
    words: str
    help: str
    also: tuple[str, ...] = ()


_KINDS = {
    "maxSteps": _Kind(
        "--max-steps",
        "N",
        "a whole number, 1 or more",
        "The most steps of the thread, in all runs together.",
        # Seed 003 calls steps rounds.
        ("--max-rounds",),
    ),
    "maxExecutionTime": _Kind(
        "--max-execution-time",
        "SECONDS",
        "a time above 0 and at most a year: type seconds, or as 30m, 2h, 1d",
        "The longest time of its agents, all steps together; also 30m, 2h, 1d.",
    ),
    "maxTokens": _Kind(
        "--max-tokens",
        "N",
        "a whole number, 1 or more",
        "No step begins after its agents have reported this many tokens, in and out.",
    ),
    "maxCost": _Kind(
        "--max-cost",
        "USD",
        "a number of US dollars above 0",
        "No step begins after its agents have reported this cost.",
    ),
}


def limit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument ``limits: dict[str, Any]`` to a verb: the typed limits; None removes one."""

    def with_limits(*args: Any, **given: Any) -> Any:
        limits: dict[str, Any] = {}
        for name, kind in _KINDS.items():
            typed, is_taken = given.pop(name), given.pop(_no(name))
            if typed is not None and is_taken:
                told = f"{kind.option} and {_with_no(kind.option)} exclude each other"
                raise click.UsageError(told)
            if typed is not None or is_taken:
                limits[name] = None if is_taken else typed.value
        return function(*args, limits=limits, **given)

    wrapped: Any = update_wrapper(with_limits, function)
    for name, kind in reversed(_KINDS.items()):
        wrapped = click.option(_with_no(kind.option), _no(name), is_flag=True, hidden=True)(wrapped)
        wrapped = click.option(
            kind.option,
            *kind.also,
            name,
            type=LimitWords(name, kind.words),
            metavar=kind.metavar,
            help=kind.help,
        )(wrapped)
    made: Callable[..., Any] = wrapped
    return made


def _read(limit: str, text: str) -> float | None:
    if limit == "maxExecutionTime":
        return parse_duration_ms(text)
    if limit == "maxCost":
        return float(text) if _NUMBER.fullmatch(text) else None
    return int(text) if _WHOLE.fullmatch(text) else None


def _with_no(option: str) -> str:
    return f"--no-{option.removeprefix('--')}"


def _no(name: str) -> str:
    return f"no_{name}"
