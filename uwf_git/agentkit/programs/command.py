"""The adapter for an agent program that is driven by its command line, and why a program failed.

It finds the program, makes its folder and environment, runs it, and reports the ends that are not
an answer. An adapter adds data and two pure functions, ``build`` and ``read``. Only the program's
own final record makes an answer; a program that we stopped has none. The message of a failure
names the program and holds its own words, so the time at which a limit ends is not lost.
Calls and adapters are NamedTuples: a frozen dataclass takes 0.5 ms to define.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple

from uwf_git.agentkit import turn
from uwf_git.agentkit.programs import playing
from uwf_git.agentkit.records import parse_lines
from uwf_git.agentkit.running import LiveLog
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed, FailureKind
from uwf_git.agents import command_line
from uwf_git.agents.command_line import ProgramMissing
from uwf_git.agents.nested import NestedRequest, NestedRun, allowed_environment, run_nested
from uwf_git.model.text import render_time, without_colours

_LONGEST_WORDS = 500
_SIGNALLED = 128

# Compiled when needed: that takes 2 ms, and most programs do not fail.
_STATUS = (
    r"(?i)(?:\bstatus(?: code)?|\bHTTP(?: error)?|\bAPI error|\"?\bcode\"?)\W{0,4}([45]\d\d)\b"
)

_LIMIT = (
    r"rate.?limit|(usage|session|weekly|spend|fast) limit|hit your .{0,40}limit|(?<!disk )quota"
    r"|too many requests|resource.?exhausted|exhausted your"
)
_LENGTH = (
    r"prompt is too long|context.{0,10}(length|window)|maximum.{0,12}(context|tokens)"
    r"|too (large|many (input )?tokens)|input exceeds"
)
_LOGIN = (
    r"unauthori[sz]ed|authenticat|auth method|not logged in|/login|log ?in again|api.?key"
    r"|credit balance|permission_denied"
)
_WORDS: tuple[tuple[FailureKind, str], ...] = (
    ("rate-limit", _LIMIT),
    ("too-long", _LENGTH),
    ("auth", _LOGIN),
)

_ERROR_LINE = r"(?i)^\s*(?:fatal )?error\b:?\s*(?P<words>.*\w.*)$"

_HELP = r"(?i)usage:\s"


@dataclass(frozen=True, slots=True)
class EndedProgram:
    run: NestedRun
    question: AdapterQuestion
    folder: str
    """The folder that ``build`` was given for files."""

    def read_records(self) -> list[dict[str, Any]]:
        """Return the JSON objects that it printed, one a line."""
        return parse_lines(self.run.stdout)

    def explain_no_record(
        self, name: str, *, login: str, partial: AdapterAnswer | None = None
    ) -> AskFailed:
        """Return the failure of a program without a final record; without any output see stderr."""
        status = self.run.exit_code
        words, is_error = find_last_words(self.run.stderr)
        if status > _SIGNALLED and not is_error:
            message = f"{name} was killed by signal {status - _SIGNALLED} before it had a result"
            return AskFailed("crashed", message, partial=partial)
        message = f"{name} ended without a result, with exit status {status}"
        if not words:
            return AskFailed("no-result", message, partial=partial)
        kind = classify_words(words)
        if kind == "model-error":
            kind = "usage" if status and not self.run.stdout.strip() else "no-result"
        hint = login if kind == "auth" else None
        return AskFailed(kind, f"{message}: {words}", hint=hint, partial=partial)


class Report(NamedTuple):
    answer: AdapterAnswer
    """Its answer, or the part that there is."""

    has_end: bool = True
    """Whether it printed its final record."""

    error: str | None = None
    """Its words, if it says that it failed; "": it gives no reason."""

    status: int | None = None
    """The HTTP status by which its model's endpoint failed."""

    reset_s: int | None = None
    """When an exceeded limit ends, in seconds since 1970."""

    is_refused: bool = False
    """Whether it was not allowed to use a tool, which explains an empty answer."""

    any_status: bool = False
    """Whether its exit status does not count."""

    @property
    def is_good(self) -> bool:
        """Whether its final record reports success."""
        return self.has_end and self.error is None

    def explain(self, name: str, *, login: str) -> AskFailed:
        """Return the failure of the program *name*, from its own words, *login* as a hint.

        The failure tells when a rate limit ends, if that is known (``resetAt``, in milliseconds).
        """
        words = self.error or ""
        said = command_line.on_one_line(words).strip()[:_LONGEST_WORDS] or "it gave no reason"
        kind = classify_words(words, status=self.status)
        hint = login if kind == "auth" else None
        failure = AskFailed(kind, f"{name}: {said}", hint=hint, partial=self.answer)
        if self.reset_s is not None and kind == "rate-limit":
            failure.facts["resetAt"] = self.reset_s * 1000
            failure.hint = f"the limit ends at {render_time(self.reset_s * 1000)}"
        return failure


def classify_words(words: str, *, status: int | None = None) -> FailureKind:
    """Return the kind of failure that *words* mean; an HTTP status, if there is one, decides."""
    found = re.search(_STATUS, words) if status is None else None
    told = int(found[1]) if found else status
    kind = "model-error" if told is None else turn.classify_status(told)
    if kind != "model-error":
        return kind
    meant = (kind for kind, pattern in _WORDS if re.search(pattern, words, re.IGNORECASE))
    return next(meant, "model-error")


def find_last_words(stderr: bytes) -> tuple[str, bool]:
    """Return the last line of *stderr* that reports an error, and True; else the last line.

    The line before an unexpected help page counts as an error too.
    """
    text = without_colours(stderr.decode(errors="replace"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    helped = next((number for number, line in enumerate(lines) if re.match(_HELP, line)), None)
    if helped:
        lines = lines[:helped]
    found = [match for line in lines if (match := re.match(_ERROR_LINE, line))]
    said = found[-1]["words"] if found else lines[-1] if lines else ""
    return command_line.on_one_line(said)[:_LONGEST_WORDS], bool(found or helped)


_PROMPT, _PROMPT_FILE = "{prompt}", "{prompt_file}"


class ProgramCall(NamedTuple):
    argv: tuple[str, ...]
    """Its name first, which is replaced by the path of the file that was found."""

    given: str = ""
    """Its stdin."""

    environ: Mapping[str, str] = {}
    """More variables, besides the part of our environment that it may see."""

    linger_s: float = 0.0
    """How long what it has started may run on when it has ended."""


class CommandAdapter(NamedTuple):
    name: str

    build: Callable[[AdapterQuestion, str], ProgramCall]
    """Build the call for a question; the second argument is a folder for files."""

    read: Callable[[EndedProgram], Report]
    """Read what a call that ended has reported; raise ``AskFailed`` for a failure of its own."""

    programs: tuple[str, ...] = ()
    """Its names, the likeliest first. Empty: the first word of the built call is its name."""

    schema_way: str = ""
    """How it takes a JSON Schema of its answer, if it does."""

    takes_mcp: bool = False

    resumes: bool = True
    tell: Callable[[dict[str, Any]], Iterable[Mapping[str, Any]]] | None = None
    """Read from one of its records what the live log shows; None: it prints a text."""

    environ: tuple[str, ...] = ()
    """The variables that it may see: names, or prefixes such as ``ANTHROPIC_*``."""

    install: str = ""

    login: str = ""
    """How to log in: the hint where that is the problem."""

    lost_session: str = ""
    """A pattern of what it says if it does not know the session to resume."""

    final: str = "result"

    anew: Collection[str] | None = None
    """The numbers in the usage of a resumed conversation that are not its whole; None: all."""

    @property
    def takes_schema(self) -> bool:
        return bool(self.schema_way)

    @property
    def keys(self) -> dict[str, str]:
        way = f"words: ask for the fields in words, not by {self.schema_way}"
        keys = {"schema": way} if self.schema_way else {}
        return keys | (
            {"mcp": "off: do not offer it the tools of `uwf mcp`"} if self.takes_mcp else {}
        )

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        """Run the program once."""
        with _own_folder(question.step_dir, self.name) as folder:
            command = self.build(question, folder)
            turn.extend_prompt(question.step_dir, question.prompt, command.given)
            ended = EndedProgram(self._run(command, question, folder), question, folder)
            return self.judge(ended)

    def judge(self, ended: EndedProgram) -> AdapterAnswer:
        """Return the answer of a call that was not stopped, with the usage of that call alone."""
        failure: AskFailed | None = None
        try:
            answer = self.parse(ended)
        except AskFailed as failed:
            # The end of an output without an answer is kept.
            raw = ended.run.stdout[-256 * 1024 :].decode(errors="replace")
            failure, answer = failed, failed.partial or AdapterAnswer(text=raw)
        answer = self._with_own_usage(ended.question, answer)
        if stopped := _why_stopped(ended):
            failure = AskFailed(stopped[0], f"{self.name} {stopped[1]}")
        if failure is None:
            return answer
        failure.partial = answer
        raise failure

    def parse(self, ended: EndedProgram) -> AdapterAnswer:
        """Return the answer of a call that ended."""
        report, run = self.read(ended), ended.run
        answer, session = report.answer, ended.question.session
        if session is not None and self.lost_session and not report.is_good:
            said = f"{run.stderr.decode(errors='replace')}\n{report.error}"
            if re.search(self.lost_session, said, re.IGNORECASE):
                message = f"{self.name} does not know the session {session:.60} any more"
                raise AskFailed("no-session", message)
        if report.error is not None:
            raise report.explain(self.name, login=self.login)
        if not report.has_end:
            raise ended.explain_no_record(self.name, login=self.login, partial=answer)
        if run.exit_code and not report.any_status:
            message = f"{self.name} ended with exit status {run.exit_code} after its {self.final}"
            raise AskFailed("crashed", message, partial=answer)
        if answer.text.strip() or answer.structured is not None:
            return answer
        if report.is_refused:
            message = f"{self.name} ended without an answer: it was not allowed to use its tools"
            hint = f"uwf.{self.name}.permission says what it may do; see uwf-{self.name} --help"
            raise AskFailed("refused-permission", message, hint=hint, partial=answer)
        raise AskFailed("no-result", f"{self.name} ended well, but said nothing", partial=answer)

    def _run(self, command: ProgramCall, question: AdapterQuestion, folder: str) -> NestedRun:
        environment = build_environment(question, self.environ)
        configured = question.settings.get("program")
        names = (configured,) if configured else self.programs or command.argv[:1]
        install = "" if configured else self.install
        program = find_program(names, question, environment["PATH"], install)
        request = NestedRequest(
            argv=(program, *command.argv[1:]),
            environment={**environment, **command.environ},
            workdir=question.workdir,
            given=command.given.encode(errors="replace"),
            folder=folder,
            timeout_s=question.timeout_s,
            silence_s=question.silence_s,
            linger_s=command.linger_s,
        )
        log = LiveLog()
        said = log.add if self.tell is None else LiveRecords(self.tell, log).add
        try:
            return run_nested(request, on_stdout=said, on_stderr=log.add)
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            raise AskFailed("crashed", f"cannot start {self.name}: {problem.lower()}") from error
        finally:
            log.end()

    def _with_own_usage(self, question: AdapterQuestion, answer: AdapterAnswer) -> AdapterAnswer:
        """Return *answer*, complete or not, with the usage of this question alone."""
        is_continued = question.session is not None and answer.session in (None, question.session)
        if self.anew is None or not is_continued:
            return answer
        left = dict(answer.usage)
        for name in left.keys() - set(self.anew):
            before = question.spent.get(name)
            # Less than before: the program restarted its count.
            if isinstance(before, int | float) and left[name] >= before:
                left[name] -= before
            elif before is None and name == "costUsd":
                # The whole conversation's cost would be counted twice.
                del left[name]
        return replace(answer, usage=left)


def build_environment(question: AdapterQuestion, names: Collection[str]) -> dict[str, str]:
    """Return the variables that a program may see: *names*, and those of the setting ``env``."""
    more = (*names, *question.settings.get("env", "").split())
    path = command_line.build_search_path(question.environ.get("PATH", os.defpath))
    return {**allowed_environment(question.environ, more=more), "PATH": path}


def find_program(names: Sequence[str], question: AdapterQuestion, path: str, install: str) -> str:
    """Return the file of the first of *names* that is on *path*; *install* is how to get it."""
    failures: list[ProgramMissing] = []
    for name in names:
        try:
            return command_line.resolve_program(name, path=path, workdir=question.workdir)
        except ProgramMissing as error:
            failures.append(error)
    missing = failures[0]
    raise AskFailed("missing", missing.message, hint=install or missing.hint) from missing


class LiveRecords:
    """Shows what a program says in records, each on a line, as it comes."""

    def __init__(
        self, tell: Callable[[dict[str, Any]], Iterable[Mapping[str, Any]]], log: LiveLog
    ) -> None:
        self._tell, self._log = tell, log
        self._begun: list[bytes] = []

    def add(self, chunk: bytes) -> None:
        whole, line_end, rest = chunk.rpartition(b"\n")
        if not line_end:
            self._begun.append(chunk)
            return
        for record in parse_lines(b"".join([*self._begun, whole])):
            for event in self._tell(record):
                self._log.tell(event)
        self._begun = [rest]


@contextmanager
def _own_folder(step_dir: str | None, name: str) -> Iterator[str]:
    """Make a folder for one question; within the step's folder it is kept for debugging."""
    if step_dir is None:
        import tempfile  # noqa: PLC0415 (bz2 and lzma behind it; only an agent run by hand needs it)

        with tempfile.TemporaryDirectory(prefix=f"uwf-{name}-") as folder:
            yield folder
        return
    for number in count(1):
        folder = os.path.join(step_dir, f"{name}-{number}")
        with suppress(FileExistsError):
            os.makedirs(folder)
            break
    yield folder


def _why_stopped(ended: EndedProgram) -> tuple[FailureKind, str] | None:
    question, run = ended.question, ended.run
    if run.outcome == "timed-out":
        return "timed-out", f"took longer than {question.timeout_s:g} s, and was stopped"
    if run.outcome == "silent":
        waits = "does it wait for a permission or a login?"
        return "silent", f"printed nothing for {question.silence_s:g} s, and was stopped; {waits}"
    if run.outcome == "too-much-output":
        return "too-much-output", f"printed more than {len(run.stdout):,} bytes, and was stopped"
    if run.outcome == "interrupted":
        return "interrupted", "was stopped from outside"
    return None


def build_call(words: Sequence[str], prompt: str, folder: str) -> ProgramCall:
    """Build the call of a command with *prompt*, by its stdin unless its *words* say otherwise.

    ``{prompt_file}`` in a word becomes the path of a file in *folder* with the prompt, ``{prompt}``
    the prompt itself.
    """
    words = tuple(words)
    if not any(_PROMPT in word or _PROMPT_FILE in word for word in words):
        return ProgramCall(words, prompt)
    file = playing.write_file(folder, "prompt.md", prompt)
    argument = playing.clean_argument(prompt)
    # The prompt itself may contain {prompt_file}.
    argv = tuple(
        argument.join(w.replace(_PROMPT_FILE, file) for w in word.split(_PROMPT)) for word in words
    )
    if any(len(os.fsencode(word)) > playing.LONGEST_ARGUMENT_BYTES for word in argv):
        message = "the prompt is too long for an argument (128 KiB)"
        raise AskFailed("too-long", message, hint="write {prompt_file}, or let it read stdin")
    return ProgramCall(argv)


def read_output(ended: EndedProgram) -> Report:
    """Read what a command printed; raise AskFailed if it failed or printed nothing."""
    answer = AdapterAnswer(text=ended.run.stdout.decode(errors="replace"))
    status = ended.run.exit_code
    words, _ = find_last_words(ended.run.stderr)
    if status:
        message = f"the command ended with exit status {status}" + (f": {words}" if words else "")
        kind = classify_words(words)
        raise AskFailed("crashed" if kind == "model-error" else kind, message, partial=answer)
    if not answer.text.strip():
        message = "the command ended well, but printed nothing" + (f": {words}" if words else "")
        raise AskFailed("no-result", message, partial=answer)
    return Report(answer)


def spawn_cli(
    argv: Sequence[str],
    prompt: str,
    *,
    timeout_s: float | None = None,
    silence_s: float | None = None,
    env: Collection[str] = (),
) -> str:
    """Run a program with *prompt*, and return what it printed.

    The prompt is its stdin, unless a word of *argv* holds ``{prompt_file}``, which becomes the path
    of a file with it, or ``{prompt}``, which becomes the prompt itself (at most 128 KiB). No shell
    reads the command. It runs in the current directory, with the variables of model providers and
    those that *env* names. It is ended with this process, after *timeout_s*, and when it has
    printed nothing for *silence_s*. What it prints is the live log.

    The prompt is recorded as that of the step, and the call in its trace.

    Raises:
        AskFailed: it cannot be started, failed, was stopped or printed nothing; ``kind`` says
            which, and ``partial`` has what it had printed.
    """
    turn.record_prompt(prompt)
    name = os.path.basename(argv[0])
    question = AdapterQuestion(
        prompt=prompt,
        step_dir=os.environ.get("UWF_STEP_DIR") or None,
        environ=os.environ,
        timeout_s=timeout_s,
        silence_s=silence_s,
    )
    adapter = CommandAdapter(
        name=name,
        build=lambda question, folder: build_call(argv, question.prompt, folder),
        read=read_output,
        environ=(*playing.PROVIDER_VARIABLES, *env),
        resumes=False,
    )
    call = {"type": "tool", "name": name, "input": {"argv": list(argv)}}
    try:
        answer = adapter.ask(question)
    except AskFailed as failure:
        turn.trace({**call, "output": failure.message, "ok": False})
        raise
    turn.trace({**call, "output": answer.text, "ok": True})
    return answer.text
