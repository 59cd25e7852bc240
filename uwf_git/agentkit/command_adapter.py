"""Command adapters: one agent program, driven by its command line.

Owns: what all of them share: finding the program, its folder, its environment, running it, and
telling the ends that are no answer. Knows nothing of: any one program: an adapter is data and two
pure functions (``build``, ``parse``).
Always true: only ``parse``, which has seen the program's own terminal record, makes an answer; a
program that we had to stop has none, whatever it printed.
A call and an adapter are NamedTuples: a frozen dataclass takes half a millisecond to define, and
every turn is a process.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from uwf_git.agentkit.adapter import Answer, Asked, FailureKind, NoAnswer
from uwf_git.agentkit.live_log import LiveLog
from uwf_git.agentkit.playing import adapter_main
from uwf_git.agentkit.step_files import extend_prompt
from uwf_git.agents.command_line import ProgramMissing, build_search_path, resolve_program
from uwf_git.agents.nested import NestedRequest, NestedRun, allowed_environment, run_nested

__all__ = ["Command", "CommandAdapter", "Ended", "adapter_main"]

# What is kept of output in which nobody found an answer.
_RAW_BYTES = 256 * 1024

_NO_VARIABLES: Mapping[str, str] = {}


class Command(NamedTuple):
    """How to call the program once."""

    argv: tuple[str, ...]
    """Its name first; the file that was found takes that place."""

    given: bytes = b""
    """What it can read on stdin."""

    environ: Mapping[str, str] = _NO_VARIABLES
    """Variables that it gets besides those it may see."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How that went."""

    run: NestedRun
    asked: Asked
    folder: str
    """Where ``build`` may have told the program to leave files."""


class CommandAdapter(NamedTuple):
    """An ``Adapter`` for one program."""

    name: str
    programs: tuple[str, ...]
    """Its names, the likeliest first. Empty: the first word that ``build`` gives is its name."""

    build: Callable[[Asked, str], Command]
    """From a question, and a folder for files, to a call."""

    parse: Callable[[Ended], Answer]
    """From its end to the answer; raises ``NoAnswer``."""

    takes_schema: bool = False
    resumes: bool = False
    environ: tuple[str, ...] = ()
    """The variables of its own that it may see: names, or beginnings as ``ANTHROPIC_*``."""

    install: str = ""
    """One line: how to get it."""

    usage_is_cumulative: bool = False
    """Whether a conversation that goes on counts on."""

    def ask(self, asked: Asked) -> Answer:
        """Run the program once.

        Raises:
            NoAnswer: it is not there, was stopped, or told of no answer.
            BadUsage: a setting is wrong.
        """
        with _own_folder(asked.step_dir, self.name) as folder:
            command = self.build(asked, folder)
            extend_prompt(asked.step_dir, asked.prompt, command.given.decode(errors="replace"))
            ended = Ended(self._run(command, asked, folder), asked, folder)
            stopped = _why_stopped(ended)
            if stopped is not None:
                kind, message = stopped
                raise NoAnswer(kind, f"{self.name} {message}", partial=self._partial(ended))
            try:
                answer = self.parse(ended)
            except NoAnswer as failure:
                failure.partial = self._with_own_usage(asked, failure.partial or _raw(ended))
                raise
            return self._with_own_usage(asked, answer)

    def _run(self, command: Command, asked: Asked, folder: str) -> NestedRun:
        path = build_search_path(asked.environ.get("PATH", os.defpath))
        program = self._find(command.argv[0], path, asked)
        more = (*self.environ, *asked.settings.get("env", "").split())
        environment = allowed_environment(asked.environ, more=more)
        request = NestedRequest(
            argv=(program, *command.argv[1:]),
            environment={**environment, "PATH": path, **command.environ},
            workdir=asked.workdir,
            given=command.given,
            folder=folder,
            timeout_s=asked.timeout_s,
            silence_s=asked.silence_s,
        )
        try:
            return run_nested(request, on_stderr=LiveLog().add)
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            raise NoAnswer("crashed", f"cannot start {self.name}: {problem.lower()}") from error

    def _find(self, first: str, path: str, asked: Asked) -> str:
        configured = asked.settings.get("program")
        names = (configured,) if configured else self.programs or (first,)
        failures: list[ProgramMissing] = []
        for name in names:
            try:
                return resolve_program(name, path=path, workdir=asked.workdir)
            except ProgramMissing as error:
                failures.append(error)
        missing = failures[0]
        hint = missing.hint if configured or not self.install else self.install
        raise NoAnswer("missing", missing.message, hint=hint) from missing

    def _partial(self, ended: Ended) -> Answer:
        """Give what a program that was stopped had said, and spent."""
        try:
            answer = self.parse(ended)
        except NoAnswer as failure:
            answer = failure.partial or _raw(ended)
        return self._with_own_usage(ended.asked, answer)

    def _with_own_usage(self, asked: Asked, answer: Answer) -> Answer:
        """Give *answer*, or the beginning of one, with the usage of this question alone."""
        is_continued = asked.session is not None and answer.session in (None, asked.session)
        if not (self.usage_is_cumulative and is_continued):
            return answer
        return replace(answer, usage=_subtract(answer.usage, asked.spent))


@contextmanager
def _own_folder(step_dir: str | None, name: str) -> Iterator[str]:
    """Make a folder for one question; below the step's, it stays for those who look for reasons."""
    if step_dir is None:
        # Only an agent that is run by hand has no step, and it costs some milliseconds.
        import tempfile  # noqa: PLC0415

        with tempfile.TemporaryDirectory(prefix=f"uwf-{name}-") as folder:
            yield folder
        return
    number = 1
    while True:
        folder = os.path.join(step_dir, f"{name}-{number}")
        try:
            os.makedirs(folder)
        except FileExistsError:
            number += 1
        else:
            yield folder
            return


def _why_stopped(ended: Ended) -> tuple[FailureKind, str] | None:
    """Tell why we stopped the program, if we did."""
    asked, run = ended.asked, ended.run
    if run.outcome == "timed-out":
        return "timed-out", f"took longer than {asked.timeout_s:g} s, and was stopped"
    if run.outcome == "silent":
        waits = "does it wait for a permission or a login?"
        return "silent", f"printed nothing for {asked.silence_s:g} s, and was stopped; {waits}"
    if run.outcome == "too-much-output":
        return "too-much-output", f"printed more than {len(run.stdout):,} bytes, and was stopped"
    if run.outcome == "interrupted":
        return "interrupted", "was interrupted"
    return None


def _raw(ended: Ended) -> Answer:
    return Answer(text=ended.run.stdout[-_RAW_BYTES:].decode(errors="replace"))


def _subtract(usage: Mapping[str, Any], spent: Mapping[str, Any]) -> dict[str, Any]:
    """Give what this question cost, of a count that goes on from *spent*."""
    left: dict[str, Any] = {}
    for name, total in usage.items():
        before = spent.get(name)
        if isinstance(total, Mapping):
            left[name] = _subtract(total, before if isinstance(before, Mapping) else {})
        elif _is_number(total) and _is_number(before) and total >= before:
            left[name] = total - before
        else:
            # Less than before: it has begun to count anew.
            left[name] = total
    return left


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
