"""Run the console blocks of a Markdown file and compare their output with the text.

tests/README.md describes the language of console blocks. One file is one shell: a block sees what
the blocks above it set. The wildcards are those of trycmd (https://docs.rs/trycmd).
"""

import difflib
import functools
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sysconfig
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)")
_CONSOLE = re.compile(r"console(?P<ignore>,ignore)?(?:\s+(?P<reason>.*))?")
_SKIP = re.compile(r"<!--\s*transcript:\s*skip\b\s*(?:\((?P<reason>.+)\))?\s*-->")
_FILE = re.compile(r"<!--\s*transcript:\s*file\s+(?P<path>[\w./-]+)\s*-->")
_STATUS = re.compile(r"\? (\d+)")

_TIMEOUT_S = 300


class Malformed(Exception):
    """A console block that cannot be run as it is written."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")


@dataclass(frozen=True, slots=True)
class Command:
    """One command and its expected effect."""

    line: int
    text: str
    status: int
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """One console block."""

    line: int
    commands: tuple[Command, ...]
    skipped: str | None
    """Why the block is not run; None if it is."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The effect of one command; a status of None means that it never ended."""

    status: int | None
    output: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Fenced:
    line: int
    info: str
    before: str
    body: tuple[str, ...]


def parse(markdown: str) -> tuple[Block, ...]:
    """Read the console blocks of a Markdown document, and those that are files to be written.

    Raises:
        Malformed: a block is not closed, or has no command, or is skipped without a reason.
    """
    return tuple(_parse_blocks(markdown))


def _parse_blocks(markdown: str) -> Iterator[Block]:
    for fenced in _fenced(markdown):
        if console := _CONSOLE.fullmatch(fenced.info):
            yield _parse_block(fenced, console)
        elif file := _FILE.fullmatch(fenced.before):
            lines = [f"cat > {file['path']} <<'END OF FILE'", *fenced.body, "END OF FILE"]
            yield Block(fenced.line, (Command(fenced.line, "\n".join(lines), 0, ()),), None)


def _fenced(markdown: str) -> Iterator[_Fenced]:
    lines = markdown.split("\n")
    before, number = "", 0
    while number < len(lines):
        opening = _FENCE.fullmatch(lines[number])
        if opening is None:
            before = lines[number].strip() or before
            number += 1
            continue
        start, closing = number + 1, re.compile(rf"\s*{opening['fence']}{opening['fence'][0]}*\s*")
        end = start
        while end < len(lines) and not closing.fullmatch(lines[end]):
            end += 1
        if end == len(lines):
            raise Malformed(start, "the block is never closed")
        body = tuple(line.removeprefix(opening["indent"]) for line in lines[start:end])
        yield _Fenced(start, opening["info"].strip(), before, body)
        before, number = "", end + 1


def _parse_block(fenced: _Fenced, console: re.Match[str]) -> Block:
    skip = _SKIP.fullmatch(fenced.before)
    skipped = None
    if console["ignore"] or skip:
        skipped = console["reason"] or (skip and skip["reason"])
        if not skipped:
            raise Malformed(fenced.line, "a block that is not run has to say why")
    return Block(fenced.line, tuple(_parse_commands(fenced)), skipped)


def _parse_commands(fenced: _Fenced) -> Iterator[Command]:
    starts = [number for number, line in enumerate(fenced.body) if line.startswith("$ ")]
    if not starts:
        raise Malformed(fenced.line, "a console block needs a line that begins with `$ `")
    if starts[0] != 0:
        raise Malformed(fenced.line + 1, "output before the first command")
    for start, end in zip(starts, [*starts[1:], len(fenced.body)], strict=True):
        text = [fenced.body[start][2:]]
        rest = [line.rstrip() for line in fenced.body[start + 1 : end]]
        while rest and (rest[0] == ">" or rest[0].startswith("> ")):
            text.append(rest.pop(0)[2:])
        status = _STATUS.fullmatch(rest[0]) if rest else None
        if status:
            rest.pop(0)
        line = fenced.line + 1 + start
        yield Command(
            line, "\n".join(text), int(status[1]) if status else 0, _without_last_blanks(rest)
        )


def _without_last_blanks(lines: Sequence[str]) -> tuple[str, ...]:
    kept = list(lines)
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)


def run(
    commands: Sequence[Command],
    *,
    cwd: Path,
    timeout_s: float = _TIMEOUT_S,
    at_terminal: bool = False,
    programs: str | None = None,
) -> list[Outcome]:
    """Run the commands one after the other, in one shell that starts in *cwd*.

    Output goes to a file, not to a pipe: a process left in the background must not keep us
    waiting for its end. It is no terminal either, since progress bars differ from run to run,
    unless *at_terminal*. `uwf` is that of the folder *programs*, by default of this Python.
    """
    mark = f"\x1e{uuid.uuid4().hex}"
    lines = [f'_mark() {{ printf "{mark} %d\\n" "$1"; return "$1"; }}']
    for command in commands:
        lines += [f"eval {shlex.quote(command.text)}", "_mark $?"]
    script, said = cwd.with_name(f"{cwd.name}.sh"), cwd.with_name(f"{cwd.name}.out")
    script.write_text("\n".join(lines), encoding="utf-8")
    with said.open("wb") as file, _terminal(file) if at_terminal else nullcontext(file) as output:
        shell = subprocess.Popen(
            ["/bin/sh", script],
            cwd=cwd,
            env=_environment(programs or sysconfig.get_path("scripts")),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status = _wait(shell, timeout_s=timeout_s)
    text = said.read_bytes().decode(errors="replace")
    return _outcomes(text.replace("\r\n", "\n") if at_terminal else text, mark, status=status)


@contextmanager
def _terminal(file: IO[bytes]) -> Iterator[int]:
    """Yield a terminal; what is written there by the end of the block is in *file*."""
    ours, theirs = pty.openpty()
    has_ended = threading.Event()

    def copy() -> None:
        while True:
            is_last = has_ended.is_set()
            while select.select([ours], [], [], 0 if is_last else 0.05)[0]:
                file.write(os.read(ours, 65536))
            if is_last:
                return

    copier = threading.Thread(target=copy)
    copier.start()
    try:
        yield theirs
    finally:
        has_ended.set()
        copier.join()
        os.close(theirs)
        os.close(ours)


def _environment(scripts: str) -> dict[str, str]:
    return os.environ | {
        "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        # What Python children write to stdout and stderr keeps its order.
        "PYTHONUNBUFFERED": "1",
    }


def _wait(shell: subprocess.Popen[bytes], *, timeout_s: float) -> int | None:
    try:
        return shell.wait(timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
        return None


def _outcomes(said: str, mark: str, *, status: int | None) -> list[Outcome]:
    """Cut what the shell said at the marks; the last part belongs to a command that ended it."""
    *parts, unfinished = re.split(rf"{mark} (\d+)\n", said)
    finished = zip(parts[::2], map(int, parts[1::2]), strict=True)
    return [
        Outcome(number, _without_last_blanks([line.rstrip() for line in part.split("\n")]))
        for part, number in [*finished, (unfinished, status)]
    ]


def failures(commands: Sequence[Command], outcomes: Sequence[Outcome]) -> list[str]:
    """List the commands with another exit status than is shown, or that were not reached."""
    ended = [outcome.status for outcome in outcomes[: len(commands)]]
    ended += [None] * (len(commands) - len(ended))
    return [
        each.text for each, status in zip(commands, ended, strict=True) if status != each.status
    ]


def complaints(name: str, blocks: Sequence[Block], outcomes: Sequence[Outcome]) -> list[str]:
    """Say where the outcomes differ from what the blocks of file *name* show."""
    found = []
    commands = [command for block in blocks if not block.skipped for command in block.commands]
    for command, outcome in zip(commands, outcomes, strict=False):
        shown = in_words_of(command.expected, outcome.output)
        if shown != list(command.expected) or outcome.status != command.status:
            found.append(_complaint(name, command, outcome, shown))
    if len(outcomes) < len(commands):
        at = commands[len(outcomes) - 1]
        found.append(f"{name}:{at.line}: the shell ended here; what is below was not run")
    return found


def _complaint(name: str, command: Command, outcome: Outcome, shown: list[str]) -> str:
    ended = "did not end" if outcome.status is None else f"exit status {outcome.status}"
    diff = difflib.unified_diff(
        command.expected, shown, f"{name}:{command.line}", "what it said", lineterm=""
    )
    words = f"{name}:{command.line}: $ {command.text}\n{ended}, expected {command.status}"
    return "\n".join([words, *diff])


def in_words_of(expected: Sequence[str], actual: Sequence[str]) -> list[str]:
    """Retell *actual* with the wildcards of *expected* where they match.

    The result equals *expected* exactly when all of it matches; if not, a diff of the two shows
    nothing but real differences.
    """
    cost = _edit_costs(expected, actual)
    told: list[str] = []
    i = j = 0
    while i < len(expected) or j < len(actual):
        here = cost[i][j]
        if i < len(expected) and expected[i] == "...":
            if here == cost[i + 1][j]:
                told.append("...")
                i += 1
            else:
                j += 1
        elif i < len(expected) and j < len(actual) and _matches(expected[i], actual[j]):
            told.append(expected[i])
            i, j = i + 1, j + 1
        elif j < len(actual) and here == cost[i][j + 1] + 1:
            told.append(actual[j])
            j += 1
        else:
            i += 1
    return told


def _edit_costs(expected: Sequence[str], actual: Sequence[str]) -> list[list[int]]:
    """Count, for every pair of endings, the lines to remove or add until the two match.

    Lines that match are always paired: no other choice is ever cheaper.
    """
    cost = [[0] * (len(actual) + 1) for _ in range(len(expected) + 1)]
    cost[-1] = list(range(len(actual), -1, -1))
    for i in reversed(range(len(expected))):
        anything = expected[i] == "..."
        cost[i][-1] = cost[i + 1][-1] + (0 if anything else 1)
        for j in reversed(range(len(actual))):
            if anything:
                cost[i][j] = min(cost[i + 1][j], cost[i][j + 1])
            elif _matches(expected[i], actual[j]):
                cost[i][j] = cost[i + 1][j + 1]
            else:
                cost[i][j] = 1 + min(cost[i + 1][j], cost[i][j + 1])
    return cost


def _matches(pattern: str, line: str) -> bool:
    return _compiled(pattern).fullmatch(line) is not None


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("[..]"))))
