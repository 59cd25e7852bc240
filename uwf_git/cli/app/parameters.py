"""Parameters of verbs besides plain words: files, standard input, prompts, agents, limits, JSON."""

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from uwf_git.agents.command_line import BadJson, parse_strict_json
from uwf_git.cli.output.screen import note
from uwf_git.errors import BadUsage, Refused
from uwf_git.model.limits import FIT, LIMITS, find_limit_problem
from uwf_git.model.node import NotCanonical
from uwf_git.model.text import parse_duration_ms
from uwf_git.surroundings import Lazy

if TYPE_CHECKING:
    from uwf_git.engine import masking
else:
    masking = Lazy("uwf_git.engine.masking")  # few verbs have agents typed

# Files, standard input, prompts.
#
# Nothing is read while click parses, since a shell that completes words parses too, but when the
# verb reads it. `-` is standard input.

MAX_INPUT_BYTES = 16 * 1024 * 1024
"""More than anybody types, and small enough to hold in memory several times."""

_STDIN = "standard input"
_GIVE_LESS = (
    "give less: name a large file in the text, and add to a state in parts, with `uwf thread patch "
    "THREAD --file FILE`"
)
_PROMPT_HINT = "give it with -p TEXT or with --prompt-file FILE; `-` is standard input"

_MOST_SECONDS = 1e9


def not_text(name: str, *, offset: int) -> Refused:
    """Say that the text is not UTF-8."""
    return Refused(
        f"{name} is not UTF-8 text (byte {offset})",
        code="not-text",
        hint="convert it, for example with `iconv -t utf-8`",
        path=name,
        offset=offset,
    )


def no_prompt(what: str, *, hint: str = _PROMPT_HINT) -> BadUsage:
    """Say that the prompt is missing, empty or given twice."""
    return BadUsage(what, code="no-prompt", hint=hint)


class Input(NamedTuple):
    """A file named on the command line, not yet read."""

    path: str
    """As it was typed; `-` is standard input."""

    too_large: str = _GIVE_LESS
    """What to do if it is too large."""

    @property
    def name(self) -> str:
        """Return its name for errors."""
        return _STDIN if self.path == "-" else self.path

    def read_bytes(self, *, limit_bytes: int = MAX_INPUT_BYTES) -> bytes:
        """Read all of it."""
        try:
            if self.path == "-":
                _take_stdin()
                # Python sets it to None if the stream was closed at start.
                content = b"" if sys.stdin is None else sys.stdin.buffer.read(limit_bytes + 1)
            else:
                with open(self.path, "rb") as file:
                    content = file.read(limit_bytes + 1)
        except (OSError, ValueError) as error:
            # ValueError: the path holds a NUL.
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise Refused(
                f"{self.name} cannot be read: {reason}",
                code="input-unreadable",
                hint="name a file, or `-` for standard input",
                path=self.name,
            ) from error
        if len(content) > limit_bytes:
            raise Refused(
                f"{self.name} is larger than {limit_bytes} bytes",
                code="input-too-large",
                hint=self.too_large,
                path=self.name,
                limit=limit_bytes,
            )
        return content

    def read_text(self, *, is_exact: bool = False) -> str:
        """Read all of it as UTF-8; a leading byte order mark is dropped, unless *is_exact*."""
        content = self.read_bytes()
        try:
            return content.decode().removeprefix("" if is_exact else "\ufeff")
        except UnicodeDecodeError as error:
            raise not_text(self.name, offset=error.start) from None


def _take_stdin() -> None:
    """Refuse a second parameter that would find nothing, since the first has read all of it."""
    context, mark = click.get_current_context(silent=True), object()
    if context is not None and context.meta.setdefault(_STDIN, mark) is not mark:
        raise BadUsage(
            "standard input is to be read twice",
            code="stdin-twice",
            hint="name a file, or give the text itself, for all of them but one",
        )


class InputPath(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """The type of an argument or option that names a file; its value is an `Input`."""

    name = "file"

    def __init__(self, too_large: str = _GIVE_LESS) -> None:
        self._too_large = too_large

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Input:
        """Take the name; nothing is read yet."""
        if value == "":
            self.fail("it needs a path, or `-`", param, ctx)
        return Input(value, self._too_large)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        """Let the shell complete file names."""
        return click.Path().shell_complete(ctx, param, incomplete)


INPUT = InputPath()


class Seconds(click.FloatRange):
    """The type of an option that takes seconds; a number that is too large means 30 years."""

    name = "number of seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse the number."""
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a valid {self.name}.", param, ctx)
        return min(seconds, _MOST_SECONDS)


def with_options(
    change: Callable[[dict[str, Any]], None], *options: Callable[..., Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add *options* to a verb; *change* makes the arguments of the verb out of their values."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*args: Any, **given: Any) -> Any:
            change(given)
            return function(*args, **given)

        wrapped: Callable[..., Any] = update_wrapper(changed, function)
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def _read_message(given: dict[str, Any]) -> None:
    given["message"] = text_argument(given["message"], "the message")


def message_option(
    metavar: str, help_text: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the argument ``message: str`` to a verb."""
    option = click.option("-m", "--message", default="", metavar=metavar, help=help_text)
    return with_options(_read_message, option)


reason_option = message_option("TEXT", "The reason, recorded in the commit.")
hint_option = message_option(
    "HINT", "A hint for the agent that takes the step, recorded in the commit."
)


PROMPT_OPTIONS = (
    click.option(
        "-p",
        "--prompt",
        "prompt_text",
        metavar="TEXT",
        help="The prompt; `-` reads it from standard input.",
    ),
    click.option(
        "--prompt-file", type=INPUT, help="Read the prompt from a file; `-` is standard input."
    ),
)
"""``-p TEXT`` is for short prompts, ``--prompt-file FILE`` for long ones.

Both take `-`. Trailing newlines are dropped, as shells do: `echo x | … -p -` means `-p x`.
"""


def read_prompt(
    text: str | None,
    file: Input | None,
    *,
    name: str = "prompt",
    hint: str = _PROMPT_HINT,
    is_needed: bool = False,
) -> str | None:
    """Return the prompt from the option that was given; None without any, unless it *is_needed*."""
    if text is not None and file is not None:
        raise no_prompt(f"the {name} is given twice, as text and as a file", hint=hint)
    source = Input("-") if text == "-" else file
    if source is not None:
        prompt = source.read_text()
    elif text is not None:
        prompt = text_argument(text, f"the {name}")
    elif is_needed:
        raise no_prompt(f"there is no {name}", hint=hint)
    else:
        return None
    if not prompt.strip():
        raise no_prompt(f"the {name} is empty", hint=hint)
    return prompt.rstrip("\r\n")


def text_argument(text: str, name: str) -> str:
    """Return an argument if it is text; Python passes other bytes on as surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise not_text(name, offset=len(os.fsencode(text[: error.start]))) from None
    return text


# The option `--agent`: ``[ROLE=]CMD``, ``[ROLE=]{…}`` with settings, or ``[ROLE=]@FILE``.
#
# A file is read here, once: an agent that changes it cannot change what a run still plays.

_FILE = re.compile(r"((?:[^\s/=\"'\\]+=)?)@(.+)", re.DOTALL)

METAVAR = "[ROLE=]CMD|{…}|@FILE"


def agents_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the argument ``agents: tuple[str, ...]`` to a verb, with the content of files."""

    def read(given: dict[str, Any]) -> None:
        environ = click.get_current_context().obj.environ
        given["agents"] = tuple(read_agent_option(each, environ) for each in given["agents"])

    option = click.option("--agent", "agents", multiple=True, metavar=METAVAR, help=help_text)
    return with_options(read, option)


def read_agent_option(text: str, environ: Mapping[str, str]) -> str:
    """Return a value of ``--agent`` with the content of the file that it names, as JSON.

    It warns of what looks like a key, or a secret of *environ*, as a shell puts it in.
    """
    text_argument(text, "--agent")
    for name, value in environ.items():
        if masking.mask(text, masking.find_secrets({name: value})) != text:
            note(
                f"warning: --agent has the value of {name} in it, and is recorded, and pushed; if "
                "that is a secret, single quotes leave it to the agent's environment: "
                f"""--agent 'uwf-shell "… ${name} …"'"""
            )
    if masking.mask_keys(text) != text:
        note("warning: --agent has what looks like a key in it, and is recorded, and pushed")
    named = _FILE.fullmatch(text)
    if named is None:
        return text
    from uwf_git.model.definition.roles import read_agent_settings  # noqa: PLC0415 (PyYAML: 30 ms, and few name files)

    source = Input(named[2])
    settings = read_agent_settings(source.read_bytes(), name=source.name)
    return named[1] + json.dumps(settings, ensure_ascii=False)


# The options that limit a thread: `--max-steps` and the like.
#
# An option that is not given changes nothing; `none`, or the `--no-` form, removes the limit.

_NONE = "none"
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_WHOLE = re.compile(r"[0-9]{1,16}")


class LimitWords(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """The type of an option that takes a limit, as it is stored, or the word for no limit."""

    name = "limit"

    def __init__(self, limit: str) -> None:
        self._limit, self._unit = limit, LIMITS[limit].unit

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        """Parse the text."""
        text = str(value).strip()
        if text == _NONE:
            return text
        number = _read(self._unit, text)
        if number is None or find_limit_problem(self._limit, number) is not None:
            self.fail(f"{text[:40]!r} is not {_WORDS[self._unit]}; 'none' is no limit", param, ctx)
        return number


_WORDS = {**FIT, "ms": "a time above 0 and at most a year: type seconds, or as 30m, 2h, 1d"}


def _read_limits(given: dict[str, Any]) -> None:
    limits: dict[str, Any] = {}
    for name, limit in LIMITS.items():
        typed, is_taken = given.pop(name), given.pop(_no(name))
        if typed is not None and is_taken:
            told = f"{limit.option} and {_with_no(limit.option)} exclude each other"
            raise click.UsageError(told)
        if typed is not None or is_taken:
            limits[name] = None if is_taken or typed == _NONE else typed
    given["limits"] = limits


def _list_limit_options() -> Iterator[Callable[..., Any]]:
    for name, limit in LIMITS.items():
        how: dict[str, Any] = {"metavar": limit.metavar, "help": limit.about}
        yield click.option(limit.option, *limit.also, name, type=LimitWords(name), **how)
        yield click.option(_with_no(limit.option), _no(name), is_flag=True, hidden=True)


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


limit_options = with_options(_read_limits, *_list_limit_options())
"""Add the argument ``limits: dict[str, Any]`` to a verb: the typed limits; None removes one."""


# JSON in arguments and files, read strictly: what no node can hold is an error, as is bad syntax.


def not_json(name: str, problem: str) -> BadUsage:
    """Say that the input is not JSON."""
    return BadUsage(
        f"{name} is not JSON: {problem}",
        code="not-json",
        hint="strings and keys need double quotes; in a shell, put the JSON in single quotes, or "
        "give `-` and the JSON on standard input",
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
