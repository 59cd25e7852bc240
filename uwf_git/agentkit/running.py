"""Run an author's function as an agent: context in, result out, exit status.

The process exits with 0 only after a whole result was printed. With another status, stdout has at
most the text in which no result was found. Other output of the function, or of its children, goes
to stderr, which is the live log.
"""

import atexit
import gc
import os
import sys
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from uwf_git.agentkit import turn
from uwf_git.agentkit.ladder import Fallbacks, NoMeta, describe_failure, extract_with_fallbacks
from uwf_git.agentkit.llm.endpoint import find_extractor
from uwf_git.agentkit.turn import Adapter, AdapterAnswer, AdapterQuestion, AgentResult, AskFailed
from uwf_git.agents.command_line import on_one_line
from uwf_git.engine.prompt import build_prompt as assemble_prompt
from uwf_git.engine.turn_context import AgentContext
from uwf_git.errors import BadUsage, UwfError
from uwf_git.model.text import cut_middle
from uwf_git.surroundings import speak_utf8

AgentFunction = Callable[[AgentContext], str | AgentResult]

_FAILED = 1
_INTERRUPTED = 130

_LONGEST_HALF = 500_000


def create_agent(function: AgentFunction) -> Callable[[], int]:
    """Make the ``main`` of an agent from a function of its context.

    The function returns an ``AgentResult``, or a text with the fields in the form that the prompt
    asks for; a configured extractor (``uwf.extractor.model``) reads a text without them. An
    exception becomes one line on stderr and exit status 1; with UWF_DEBUG in the environment, also
    a traceback. The step keeps the prompt of the turn, or the one that the function records.
    """

    def main() -> int:
        return run_as_agent(
            lambda: complete(function, turn.load_context(os.environ, sys.argv[1:]), os.environ)
        )

    return main


def make_main(page: str, run: Callable[[list[str]], int]) -> Callable[[], int]:
    """Make the ``main`` of a program from its help *page*, and what it does with its arguments.

    An error before it begins to work is told on stderr. Words and paths are UTF-8 in every locale.
    """

    def main() -> int:
        speak_utf8()
        argv = sys.argv[1:]
        if argv[:1] in (["-h"], ["--help"]):
            sys.stdout.write(page)
            return 0
        try:
            return run(argv)
        except UwfError as error:
            hint = f"hint: {error.hint}\n" if error.hint else ""
            sys.stderr.write(f"error: {error.message}\n{hint}")
            return error.exit_status

    return main


def complete(
    function: AgentFunction, context: AgentContext, environ: Mapping[str, str]
) -> AgentResult:
    """Call *function*; extract the result from a text.

    The prompt of the turn, the trace, and why there is no result are written to the step's files.
    """
    step_dir = environ.get("UWF_STEP_DIR") or None
    if step_dir is not None:
        # Before the function, which may record another one.
        turn.write_prompt(step_dir, assemble_prompt(context))
    with _noted_failure(step_dir):
        answer: object = function(context)
    if isinstance(answer, AgentResult):
        return answer
    if isinstance(answer, str):
        said = AdapterQuestion(prompt="", environ=environ)
        return find_result(_Said(answer), context, said, reads_step=False)
    if isinstance(answer, Coroutine):
        # Else Python warns of it after the error, in the line that is read as the reason.
        answer.close()
    raise TypeError(f"an agent returns a str or an AgentResult, not {type(answer).__name__}")


class _Said:
    """An ``Adapter`` whose one answer is the text of an author's function."""

    name, takes_schema, resumes = "agent", False, False

    def __init__(self, text: str) -> None:
        self._text = text

    def ask(self, _question: AdapterQuestion) -> AdapterAnswer:
        """Return the text."""
        return AdapterAnswer(text=self._text)


@contextmanager
def _noted_failure(step_dir: str | None) -> Iterator[None]:
    try:
        yield
    except (AskFailed, NoMeta) as failure:
        turn.write_failure(step_dir, describe_failure(failure))
        raise


def find_result(
    adapter: Adapter, context: AgentContext, question: AdapterQuestion, *, reads_step: bool
) -> AgentResult:
    """Ask *adapter*, and find the result in its answer; write trace and failure to the step.

    What the agent left in files counts only if it *reads_step*.
    """
    environ, role = question.environ, context.current_role
    step_dir = environ.get("UWF_STEP_DIR") or None
    with _noted_failure(step_dir), turn.open_trace(environ.get("UWF_TRACE")) as note:
        rungs = Fallbacks(find_extractor=lambda: find_extractor(environ, role.name), note=note)
        if reads_step:
            rungs = rungs._replace(
                reported=lambda: turn.read_reported(step_dir, context.workdir, role.output_file),
                submitted=lambda: turn.read_submitted(step_dir),
            )
        return extract_with_fallbacks(adapter, context, question, rungs)


def run_as_agent(produce: Callable[[], AgentResult]) -> int:
    """Print the result of *produce*, or one line on stderr; return the exit status."""
    # Only to a file: stderr is recorded, and its last line is read.
    if os.environ.get("UWF_DEBUG", "") not in {"", "0", "1"}:
        from uwf_git.commands.admin import switch_on_debug_log  # noqa: PLC0415 (10 ms, and rarely used)

        switch_on_debug_log(os.environ, cwd=os.getcwd())
    try:
        with _rare_collections(), _kept_stdout() as stdout:
            _print_outcome(produce, stdout)
    except KeyboardInterrupt:
        return _say("interrupted", _INTERRUPTED)
    except SystemExit as error:
        return _account_for_exit(error)
    except UwfError as error:
        status = error.exit_status if isinstance(error, BadUsage) else _FAILED
        status = _INTERRUPTED if error.facts.get("kind") == "interrupted" else status
        return _fail(error.message, hint=error.hint, status=status)
    except Exception as error:  # noqa: BLE001 (the boundary: whatever an author's code raises)
        return _fail(f"{type(error).__name__}: {error}", hint=None, status=_FAILED)
    return 0


def _print_outcome(produce: Callable[[], AgentResult], stdout: IO[bytes]) -> None:
    """Print the result, or the text without one (cut if very long): it has been paid for."""
    try:
        result = produce()
    except (NoMeta, AskFailed) as failure:
        partial = failure.partial.text if isinstance(failure, AskFailed) and failure.partial else ""
        text = failure.text if isinstance(failure, NoMeta) else partial
        # The engine would record too much output as the failure, instead of the reason.
        shown = cut_middle(text, _LONGEST_HALF, _LONGEST_HALF)
        stdout.write(shown.encode(errors="replace"))
        stdout.flush()
        raise
    turn.print_result(result, stdout)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage rarely, and not at the end of the process.

    That last collection costs 15 to 20 ms, and the kernel frees the memory anyway. ``atexit`` and
    ``with`` work as usual.
    """
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    # By default Python collects garbage at every 700 objects. A start makes 40,000, none of them
    # garbage, so that costs 5 to 10 ms of 100.
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], 100_000) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _kept_stdout() -> Iterator[IO[bytes]]:
    """Keep the real stdout for the result; redirect all other output to stderr, and for good."""
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "wb") as kept:
        os.dup2(2, 1)
        try:
            yield kept
        finally:
            sys.stdout.flush()


def _account_for_exit(error: SystemExit) -> int:
    """Return a failure for sys.exit(), since there is no result."""
    if isinstance(error.code, int) and error.code:
        return error.code
    is_text = error.code not in (None, 0)
    return _say(str(error.code) if is_text else "the agent exited without a result", _FAILED)


def _fail(message: str, *, hint: str | None, status: int) -> int:
    if os.environ.get("UWF_DEBUG"):
        traceback.print_exc()
    _say(f"error: {message}", status)
    return _say(f"hint: {hint}", status) if hint else status


def _say(line: str, status: int) -> int:
    sys.stderr.write(on_one_line(line) + "\n")
    return status


class LiveLog:
    """Copies the beginning of an output to stderr."""

    def __init__(self, limit: int = 1024 * 1024) -> None:
        self._left = limit
        self._is_open = False

    def tell(self, event: Mapping[str, Any]) -> None:
        """Show an event of a trace; a ``piece`` of a message goes on where the last one ended."""
        kind = event.get("type")
        if kind != "piece":
            self.end()
        said = str(event.get("text") or event.get("message") or "")
        if kind == "tool":
            said = on_one_line(f"{event.get('name')} {event.get('input') or ''}")[:160]
        if said.strip():
            line_end = "" if kind == "piece" else "\n"
            self.add(f"{said.removesuffix(line_end)}{line_end}".encode(errors="replace"))

    def end(self) -> None:
        """End an unfinished line."""
        if self._is_open:
            self.add(b"\n")

    def add(self, chunk: bytes) -> None:
        """Copy *chunk*, up to the limit."""
        if self._left <= 0:
            return
        shown = chunk[: self._left]
        self._is_open = not shown.endswith(b"\n")
        self._left -= len(shown)
        if self._left <= 0:
            shown += b"\n[the log ends here; the output goes on]\n"
        sys.stderr.flush()
        try:
            os.write(sys.stderr.fileno(), shown)
        except OSError:
            # A full disk must not end the program, whose answer is paid for.
            self._left = 0
