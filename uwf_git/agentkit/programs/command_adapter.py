"""The adapter for an agent program that is driven by its command line.

It finds the program, makes its folder and environment, runs it, and reports the ends that are not
an answer. An adapter adds data and two pure functions, ``build`` and ``parse``. Only ``parse``
makes an answer, from the program's own final record; a program that we stopped has none.
Calls and adapters are NamedTuples: a frozen dataclass takes 0.5 ms to define.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from uwf_git.agentkit.extraction.adapter import (
    AdapterAnswer,
    AdapterQuestion,
    AskFailed,
    FailureKind,
)
from uwf_git.agentkit.live_log import LiveLog
from uwf_git.agentkit.programs.playing import adapter_main
from uwf_git.agentkit.step_files import extend_prompt
from uwf_git.agents.command_line import ProgramMissing, build_search_path, resolve_program
from uwf_git.agents.nested import NestedRequest, NestedRun, allowed_environment, run_nested

__all__ = ["CommandAdapter", "EndedProgram", "ProgramCall", "adapter_main"]

# The kept end of an output without an answer.
_RAW_BYTES = 256 * 1024

_NO_VARIABLES: Mapping[str, str] = {}


class ProgramCall(NamedTuple):
    """One call of the program."""

    argv: tuple[str, ...]
    """Its name first, which is replaced by the path of the file that was found."""

    given: bytes = b""
    """Its stdin."""

    environ: Mapping[str, str] = _NO_VARIABLES
    """More variables, besides those of our environment that it may see."""

    linger_s: float = 0.0
    """How long what it has started may run on when it has ended."""


@dataclass(frozen=True, slots=True)
class EndedProgram:
    """A call that ended."""

    run: NestedRun
    question: AdapterQuestion
    folder: str
    """The folder that ``build`` was given for files."""


class CommandAdapter(NamedTuple):
    """An ``Adapter`` for one program."""

    name: str
    programs: tuple[str, ...]
    """Its names, the likeliest first. Empty: the first word of the built call is its name."""

    build: Callable[[AdapterQuestion, str], ProgramCall]
    """Build the call for a question; the second argument is a folder for files."""

    parse: Callable[[EndedProgram], AdapterAnswer]
    """Read the answer of a call that ended; raise ``AskFailed`` if there is none."""

    takes_schema: bool = False
    resumes: bool = False
    environ: tuple[str, ...] = ()
    """The variables that it may see: names, or prefixes such as ``ANTHROPIC_*``."""

    install: str = ""
    """One line: how to install it."""

    usage_is_cumulative: bool = False
    """Whether the usage of a resumed conversation includes the earlier questions."""

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        """Run the program once.

        Raises:
            AskFailed: it is missing, was stopped, or gave no answer.
        """
        with _own_folder(question.step_dir, self.name) as folder:
            command = self.build(question, folder)
            extend_prompt(
                question.step_dir, question.prompt, command.given.decode(errors="replace")
            )
            ended = EndedProgram(self._run(command, question, folder), question, folder)
            stopped = _why_stopped(ended)
            if stopped is not None:
                kind, message = stopped
                raise AskFailed(kind, f"{self.name} {message}", partial=self._partial(ended))
            try:
                answer = self.parse(ended)
            except AskFailed as failure:
                failure.partial = self._with_own_usage(question, failure.partial or _raw(ended))
                raise
            return self._with_own_usage(question, answer)

    def _run(self, command: ProgramCall, question: AdapterQuestion, folder: str) -> NestedRun:
        path = build_search_path(question.environ.get("PATH", os.defpath))
        program = self._find(command.argv[0], path, question)
        more = (*self.environ, *question.settings.get("env", "").split())
        environment = allowed_environment(question.environ, more=more)
        request = NestedRequest(
            argv=(program, *command.argv[1:]),
            environment={**environment, "PATH": path, **command.environ},
            workdir=question.workdir,
            given=command.given,
            folder=folder,
            timeout_s=question.timeout_s,
            silence_s=question.silence_s,
            linger_s=command.linger_s,
        )
        try:
            return run_nested(request, on_stderr=LiveLog().add)
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            raise AskFailed("crashed", f"cannot start {self.name}: {problem.lower()}") from error

    def _find(self, first: str, path: str, question: AdapterQuestion) -> str:
        configured = question.settings.get("program")
        names = (configured,) if configured else self.programs or (first,)
        failures: list[ProgramMissing] = []
        for name in names:
            try:
                return resolve_program(name, path=path, workdir=question.workdir)
            except ProgramMissing as error:
                failures.append(error)
        missing = failures[0]
        hint = missing.hint if configured or not self.install else self.install
        raise AskFailed("missing", missing.message, hint=hint) from missing

    def _partial(self, ended: EndedProgram) -> AdapterAnswer:
        """Return the text and the usage of a program that was stopped."""
        try:
            answer = self.parse(ended)
        except AskFailed as failure:
            answer = failure.partial or _raw(ended)
        return self._with_own_usage(ended.question, answer)

    def _with_own_usage(self, question: AdapterQuestion, answer: AdapterAnswer) -> AdapterAnswer:
        """Return *answer*, complete or not, with the usage of this question alone."""
        is_continued = question.session is not None and answer.session in (None, question.session)
        if not (self.usage_is_cumulative and is_continued):
            return answer
        return replace(answer, usage=_subtract(answer.usage, question.spent))


@contextmanager
def _own_folder(step_dir: str | None, name: str) -> Iterator[str]:
    """Make a folder for one question; within the step's folder it is kept for debugging."""
    if step_dir is None:
        # Needed only by an agent that is run by hand; it costs some milliseconds.
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


def _why_stopped(ended: EndedProgram) -> tuple[FailureKind, str] | None:
    """Return why we stopped the program; None if we did not."""
    question, run = ended.question, ended.run
    if run.outcome == "timed-out":
        return "timed-out", f"took longer than {question.timeout_s:g} s, and was stopped"
    if run.outcome == "silent":
        waits = "does it wait for a permission or a login?"
        return "silent", f"printed nothing for {question.silence_s:g} s, and was stopped; {waits}"
    if run.outcome == "too-much-output":
        return "too-much-output", f"printed more than {len(run.stdout):,} bytes, and was stopped"
    if run.outcome == "interrupted":
        return "interrupted", "was interrupted"
    return None


def _raw(ended: EndedProgram) -> AdapterAnswer:
    return AdapterAnswer(text=ended.run.stdout[-_RAW_BYTES:].decode(errors="replace"))


def _subtract(usage: Mapping[str, Any], spent: Mapping[str, Any]) -> dict[str, Any]:
    """Return *usage* less what was *spent* before, by name."""
    left: dict[str, Any] = {}
    for name, total in usage.items():
        before = spent.get(name)
        if isinstance(total, Mapping):
            left[name] = _subtract(total, before if isinstance(before, Mapping) else {})
        elif _is_number(total) and _is_number(before) and total >= before:
            left[name] = total - before
        else:
            # Less than before: the program restarted its count.
            left[name] = total
    return left


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
