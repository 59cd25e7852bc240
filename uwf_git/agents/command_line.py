"""The command of an agent, what its process is given, and its output, read as its reply."""

import json
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from uwf_git.errors import AgentFailed, Refused
from uwf_git.model.node import NotCanonical, canonical
from uwf_git.model.text import quote_path
from uwf_git.model.yaml_render import read_plain

# Agent commands, what an agent's process is given and what it left.
#
# Commands are split, the argv of their protocol is built, and the program is found. Nothing is
# expanded and no shell is involved. The program is looked up before the spawn, since exit status
# 127 could also be the agent's own.

Protocol = Literal["positional", "flags"]


class BadCommand(Refused):
    """The text is not a command line."""

    code = "bad-command"

    def __init__(self, command: str, problem: str) -> None:
        super().__init__(
            f"{command!r:.200} is no agent command: {problem}",
            hint="write it as you would type it in a shell, for example: uwf-shell 'make test'",
            command=command,
            problem=problem,
        )


class ProgramMissing(AgentFailed):
    code = "program-missing"

    def __init__(self, program: str, problem: str, *, hint: str) -> None:
        super().__init__(
            f"agent command {program!r:.200} {problem}", hint=hint, program=program, problem=problem
        )


def split_command(command: str) -> tuple[str, ...]:
    """Split *command* into words as a POSIX shell does, without expansion, or raise BadCommand."""
    if "\0" in command:
        raise BadCommand(command, "it holds a NUL character")
    try:
        os.fsencode(command)
        words = tuple(shlex.split(command))
    except UnicodeEncodeError:
        raise BadCommand(command, "it holds a lone surrogate") from None
    except ValueError as error:
        raise BadCommand(command, str(error).lower()) from None
    if not words or not words[0]:
        raise BadCommand(command, "it is empty")
    return words


def build_argv(command: str, *, protocol: Protocol, thread: str, role: str) -> tuple[str, ...]:
    """Return the words of *command* and what its protocol adds: thread, or thread and role."""
    words = split_command(command)
    if protocol == "flags":
        return (*words, "-t", thread, "-r", role)
    return (*words, thread)


def build_search_path(path: str) -> str:
    """Return the PATH *path* with the directories of uwf's own programs at its end.

    So agents that were installed with uwf are found without activating its virtual environment,
    and where `pip install --user` or `--target` has put them.
    """
    packages = Path(__file__).parents[2]
    scripts, lib = [packages / "bin"], packages.parent.parent
    # In a prefix, the packages are in lib/python3.X/site-packages.
    if lib.name in {"lib", "lib64"}:
        scripts.append(lib.parent / "bin")
    own = [
        Path(sys.executable).parent,
        *(each for each in scripts if (each / "uwf-shell").exists()),
    ]
    entries = path.split(os.pathsep) if path else []
    return os.pathsep.join(dict.fromkeys([*entries, *map(str, own)]))


def resolve_program(program: str, *, path: str, workdir: str) -> str:
    """Return the absolute path of *program*, as exec would find it from *workdir* on *path*."""
    place = Path(workdir).absolute()
    if "/" in program:
        found = str(place / program)
        _check_executable(program, found)
    else:
        # Empty and relative entries are relative to the agent's work directory. `shutil.which`
        # does the same, with bz2 and lzma behind it; most commands only name agents.
        files = (place / entry / program for entry in path.split(os.pathsep))
        executable = (str(file) for file in files if os.access(file, os.X_OK))
        found = next((file for file in executable if not os.path.isdir(file)), "")
        if not found:
            raise ProgramMissing(program, "is not on the PATH", hint=_missing_hint(program))
    _check_interpreter(program, found)
    return found


def _check_executable(program: str, file: str) -> None:
    if Path(file).is_dir():
        raise ProgramMissing(program, "is a directory", hint="name the program in it")
    if not Path(file).exists():
        raise ProgramMissing(program, "does not exist", hint=_missing_hint(program, file))
    if not os.access(file, os.X_OK):
        raise ProgramMissing(program, "may not be executed", hint=f"chmod +x {quote_path(program)}")


def _missing_hint(program: str, file: str = "") -> str:
    if "=" in program or program.startswith("~"):
        return (
            "agent commands are not run by a shell, so ~ and NAME=value do not work in them; "
            "write the whole path, or start the command with `env NAME=value`"
        )
    if "/" in program:
        return f"there is no file {file}: a path is looked for in the work directory"
    return (
        f"check with `command -v {quote_path(program)}` where uwf runs: "
        "a login shell and a service often have different PATHs"
    )


def _check_interpreter(program: str, file: str) -> None:
    """Check that a script's interpreter exists; exec would report the script as missing."""
    try:
        with Path(file).open("rb") as script:
            first = script.readline(256)
    except OSError:
        return  # Executable but not readable, so it is not a script.
    # As the kernel does, for which a carriage return is a part of the name.
    words = first[2:].strip(b" \t\n").replace(b"\t", b" ").split(b" ")
    interpreter = os.fsdecode(words[0]) if first.startswith(b"#!") else ""
    if interpreter.startswith("/") and not Path(interpreter).exists():
        raise ProgramMissing(
            program,
            f"is a script for {interpreter!r}, which does not exist",
            hint=f"check with `head -1 {quote_path(file)}`; install it, or end the lines with \\n",
        )


@lru_cache(maxsize=100)
def agent_name(command: str) -> str:
    """Return the base name of the program of *command*, such as ``uwf-shell``."""
    try:
        program = split_command(command)[0]
    except BadCommand:
        return "unknown"
    return program.rpartition("/")[2] or "unknown"


RunOutcome = Literal[
    "exited", "timed-out", "too-much-output", "interrupted", "lost", "dismissed"
]  # fmt: skip

DEFAULT_MAX_OUTPUT_BYTES = 16 * 1024 * 1024
DEFAULT_MAX_LOG_BYTES = 64 * 1024
MAX_LOGGED_BYTES = 1024 * 1024 * 1024
"""More is no log, but an agent that has run wild and fills the disk."""

DEFAULT_GRACE_S = 5.0


OnOutput = Callable[[bytes], None]
"""Receives a piece of output, which may end in the middle of a character."""


OnTick = Callable[[], None]


class Listener(NamedTuple):
    """Callbacks that receive an agent's output while it runs."""

    on_stderr: OnOutput | None = None

    on_stdout: OnOutput | None = None
    """Its reply, piece by piece."""

    on_tick: OnTick = lambda: None
    """Called some times a second, with or without output."""

    is_done: Callable[[], bool] = lambda: False
    """Called as often: the agent has done its part, and is ended if it is still there."""


class AgentRequest(NamedTuple):
    """All that an agent's process is given; nothing else reaches it."""

    argv: tuple[str, ...]
    """The program as ``resolve_program`` found it, then its arguments."""

    environment: Mapping[str, str]
    """The whole environment: nothing is inherited. A dash as /bin/sh drops names like ``a.b``."""

    workdir: str

    run_dir: str
    """An absolute path where no agent began yet; stdout, stderr, pid and exit are created there."""

    timeout_s: float | None = None
    """None: no limit."""

    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    """The limit for stdout."""

    max_logged_bytes: int = MAX_LOGGED_BYTES
    """The limit for stderr, while it runs: what it has printed at its end counts all the same."""

    max_log_bytes: int = DEFAULT_MAX_LOG_BYTES
    """How much of the end of stderr is returned."""

    kept_fds: tuple[int, ...] = ()
    """Descriptors that the agent inherits, such as the lock that it holds while it lives."""

    grace_s: float = DEFAULT_GRACE_S
    """Time between SIGTERM and SIGKILL."""

    output_mode: int = 0o600
    """Who may read what it prints: a group that shares the store takes it up after a kill."""

    is_all_log: bool = False
    """What it prints on stdout goes into the log too, in order; no answer is expected."""


class AgentRun(NamedTuple):
    outcome: RunOutcome
    """``exited`` says nothing about the answer; ``lost``: no status; ``dismissed``: work done."""

    exit_code: int | None
    """128 + n if signal n ended the agent; None if we killed the agent."""

    stdout: bytes

    stderr: bytes
    """The end of the log, where the reasons are."""

    started_ms: int
    """Milliseconds since 1970."""

    duration_ms: int
    left_running: tuple[str, ...] = ()
    """What an agent that ended well has started and not ended: ``sleep (4711)``."""


# JSON that agents print, read strictly: no duplicate keys, nothing that a node could not hold.
#
# A value that was parsed is in canonical form.


class BadJson(AgentFailed):
    """The text is not JSON that a node can hold."""

    code = "bad-json"

    def __init__(self, problem: str) -> None:
        super().__init__(f"not JSON: {problem}", problem=problem)
        self.problem = problem


def parse_strict_json(text: str) -> Any:
    """Return *text*, a JSON value that a node can hold, in canonical form, or raise BadJson."""
    value, end = parse_strict_json_at(text, 0)
    rest = text[end:].lstrip(" \t\r\n")
    if rest:
        line = text.count("\n", 0, len(text) - len(rest)) + 1
        raise BadJson(f"there is more text after the value on line {line}")
    return value


def parse_strict_json_at(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that begins at *start*, and where it ends."""
    while start < len(text) and text[start] in " \t\r\n":
        start += 1
    try:
        value, end = _DECODER.raw_decode(text, start)
        return canonical(value), end
    except json.JSONDecodeError as error:
        problem = f"{error.msg.lower()} (line {error.lineno}, column {error.colno})"
        raise BadJson(problem) from None
    except NotCanonical as error:
        raise BadJson(error.message) from error
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


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise BadJson(f"the number {text:.40} is too large")
    return number


def _refuse_constant(text: str) -> NoReturn:
    raise BadJson(f"{text} is a number in JavaScript only")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant, parse_float=_finite
)


# Quoted output on one line, printable on any terminal.


def on_one_line(text: str) -> str:
    """Return *text* without control characters and line breaks, runs of blanks as one."""
    cleaned = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(cleaned.split())


def show_beginning(text: str, *, limit: int = 80) -> str:
    """Return the beginning of *text* on one line, with an ellipsis if it was cut."""
    # Cleaning shrinks the text; four times the limit is enough for all but pages of blanks.
    shown = on_one_line(text[: 4 * limit])
    is_cut = len(shown) > limit or len(text) > 4 * limit
    return shown[:limit] + ("…" if is_cut else "")


# Front matter: YAML between two lines of dashes, then text. Engine and kit share this one reader.
#
# The text after the block is kept character by character.

# Compiled when needed: most agents print an object.
_OPENING = r"\ufeff?((?:[ \t\r]*+\n)*+)---[ \t\r]*+(?:\n|\Z)"
_CLOSING = r"(?m)^---[ \t\r]*+(?:\n|\Z)"


class FrontMatterUnclosed(AgentFailed):
    """No second line of dashes closes the front matter."""

    code = "front-matter-unclosed"

    def __init__(self, line: int) -> None:
        super().__init__(f"the front matter that begins on line {line} has no closing ---")


class FrontMatter(NamedTuple):
    source: str
    """The YAML between the dashes."""

    content: str
    """The text after the line of the closing dashes."""

    line: int
    """The line of the text on which the YAML begins, from 1."""


def split_front_matter(text: str) -> FrontMatter | None:
    """Split *text*; return None if it does not begin with a line of three dashes.

    A byte order mark and blank lines before it are skipped: models and editors add them.
    """
    opening = re.match(_OPENING, text)
    if opening is None:
        return None
    line, begin = opening[1].count("\n") + 1, opening.end()
    closing = re.compile(_CLOSING).search(text, begin)
    if closing is None:
        raise FrontMatterUnclosed(line)
    return FrontMatter(text[begin : closing.start()], text[closing.end() :], line + 1)


# An agent's output read as its reply: an object, front matter with a text, or the bare meta.
#
# An agent of a flow that no role describes may print any text as well.
#
# The same bytes give the same reply, and what was parsed can stand in a node. The role's schema
# is checked elsewhere.

Form = Literal["object", "front-matter", "bare", "text"]
BadReplyKind = Literal[
    "empty", "no-json", "bad-json", "not-an-object", "no-meta", "wrong-type", "bad-front-matter"
]

# In the order of AgentReply.
_KINDS: Mapping[str, type] = {
    "content": str,
    "usage": dict,
    "state": dict,
    "session": str,
    "rung": str,
}
REPLY_FIELDS = frozenset({"meta", *_KINDS})

_AROUND = " \t\r\n\ufeff"


class BadReply(AgentFailed):
    """The agent's output is not a reply."""

    code = "bad-reply"

    def __init__(self, kind: BadReplyKind, problem: str, output: str) -> None:
        # The problem may quote the output too.
        message = on_one_line(problem)
        beginning = show_beginning(output)
        super().__init__(
            f"{message}; it begins: {beginning}" if beginning else message,
            hint='an agent prints {"meta": {…}, "content": "…"}, or its meta alone, as one JSON '
            "object on stdout, and its log on stderr",
            kind=kind,
        )
        self.kind = kind


class AgentReply(NamedTuple):
    """A reply whose meta is not checked yet."""

    meta: Any

    content: str
    """The text; the whole output if the agent named none."""

    form: Form

    raw: bytes | None = None
    """The whole output if it was not UTF-8; the text has U+FFFD then."""

    usage: dict[str, Any] | None = None
    state: dict[str, Any] | None = None
    """A JSON merge patch."""

    session: str | None = None
    rung: str | None = None
    """How the agent kit found the meta."""


def parse_reply(stdout: bytes, *, protocol: Protocol, is_free: bool = False) -> AgentReply:
    """Return an agent's output as its reply.

    In this order: a JSON object with a ``meta``; YAML front matter and a text; with the protocol
    ``flags``, an object that is the meta itself. With ``flags`` an object is of the first form only
    if it has no other keys than that form, since a role's own field may be called meta. Elsewhere
    unknown keys are ignored: later agents may print more.

    If the agent *is_free*, an object without a ``meta`` is the meta itself, and any other output is
    a text, with an empty meta. An object with a ``content`` and only the keys that may stand beside
    it is a reply without fields.
    """
    try:
        text, raw = stdout.decode(), None
    except UnicodeDecodeError:
        text, raw = stdout.decode(errors="replace"), stdout
    bare = text.strip(_AROUND)
    if not bare:
        raise BadReply("empty", "the agent printed nothing on stdout", "")
    try:
        return _read_any(bare, text, protocol=protocol, is_free=is_free)._replace(raw=raw)
    except BadReply as error:
        if not is_free or error.kind == "wrong-type":
            raise
    return AgentReply(meta={}, content=bare, form="text", raw=raw)


def _read_any(bare: str, text: str, *, protocol: Protocol, is_free: bool) -> AgentReply:
    if bare.startswith("{"):
        return _read_object(bare, text, protocol=protocol, is_free=is_free)
    try:
        front = split_front_matter(text)
    except FrontMatterUnclosed as error:
        raise BadReply("bad-front-matter", error.message, text) from error
    if front is not None:
        return _read_front_matter(front, text)
    try:
        parse_strict_json(bare)
    except BadJson:
        problem = "the agent's output is neither a JSON object nor text with front matter"
        raise BadReply("no-json", problem, bare) from None
    raise BadReply("not-an-object", "the agent's output is JSON, but not an object", bare)


def _read_object(bare: str, text: str, *, protocol: Protocol, is_free: bool) -> AgentReply:
    try:
        fields = parse_strict_json(bare)
    except BadJson as error:
        raise BadReply("bad-json", f"the agent's output is {error.message}", text) from error
    if is_free and _has_only_content(fields):
        fields["meta"] = {}
    is_bare = is_free and "meta" not in fields
    is_reply = "meta" in fields and fields.keys() <= REPLY_FIELDS
    if is_bare or (protocol == "flags" and not is_reply):
        return AgentReply(meta=fields, content=text, form="bare")
    if "meta" not in fields:
        keys = ", ".join(sorted(fields)) or "nothing"
        raise BadReply("no-meta", f'the agent\'s object has no "meta", only {keys:.200}', text)
    content, *others = (_field(fields, name, kind, text) for name, kind in _KINDS.items())
    return AgentReply(fields["meta"], text if content is None else content, "object", None, *others)


def _has_only_content(fields: Mapping[str, Any]) -> bool:
    """Check whether an object has a text, and else only what a reply has beside its meta."""
    return "content" in fields and all(
        name in _KINDS and isinstance(value, _KINDS[name]) for name, value in fields.items()
    )


def _field(fields: dict[str, Any], name: str, kind: type, text: str) -> Any:
    """Return an optional field; null counts as absent, as many languages print it so."""
    value = fields.get(name)
    if value is None or isinstance(value, kind):
        return value
    expected = "a string" if kind is str else "an object"
    raise BadReply("wrong-type", f'"{name}" in the agent\'s output is not {expected}', text)


def _read_front_matter(front: FrontMatter, text: str) -> AgentReply:
    if not front.source.strip():
        raise BadReply("not-an-object", "the agent's front matter is empty", text)
    plain = read_plain(front.source)
    try:
        meta = canonical(_read_yaml(front, text) if plain is None else plain)
    except NotCanonical as error:
        problem = f"the agent's front matter: {error.message}"
        raise BadReply("bad-front-matter", problem, text) from error
    if not isinstance(meta, dict):
        raise BadReply("not-an-object", "the agent's front matter has no fields", text)
    return AgentReply(meta=meta, content=front.content, form="front-matter")


def _read_yaml(front: FrontMatter, text: str) -> Any:
    # PyYAML costs as much start-up as all of this module.
    from uwf_git.model.yaml_reader import BadYaml, parse_yaml  # noqa: PLC0415 (see above)

    try:
        # On its own lines, which the problem may name.
        return parse_yaml("\n" * (front.line - 1) + front.source).value
    except BadYaml as error:
        line = error.line or front.line
        problem = f"the agent's front matter is not YAML: {error.problem} (line {line})"
        raise BadReply("bad-front-matter", problem, text) from error
