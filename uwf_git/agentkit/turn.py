"""The turn for which an agent was called: its context, its result, and the files of its step.

The engine appends the arguments to an agent's command: ``<command> <thread-id>``, or ``<command>
-t <thread-id> -r <role>``. They are parsed from the end, so an agent's own options cannot be
mistaken. One whole result is printed, or nothing.

The files that an agent leaves in the step's folder (prompt.md, failure.json, submitted.json and the
trace) become nodes of the step, with keys masked. Without a step (an agent that is run by hand)
nothing is written.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from uwf_git.agents.command_line import DEFAULT_MAX_OUTPUT_BYTES
from uwf_git.agents.files import BadFileBelow, read_below, read_left_file
from uwf_git.agents.reply import BadJson, parse_strict_json
from uwf_git.engine.prompt import DEFAULT_BUDGET
from uwf_git.engine.prompt import build_prompt as assemble_prompt
from uwf_git.engine.turn_context import AgentContext, parse_context
from uwf_git.errors import AgentFailed, BadUsage, Refused


def load_context(environ: Mapping[str, str], argv: Sequence[str]) -> AgentContext:
    """Load the context of the turn for which this process was called.

    *argv* is without the program. The store at UWF_REPO is read in this process. The role is the
    one that argv or UWF_ROLE names, else the one whose turn it is. If the thread's head is no
    longer UWF_HEAD, the turn is over, and the context is refused.
    """
    # The store costs 150 ms of start-up, and help pages do not need it.
    from uwf_git.commands.inspect.context import load_thread_context  # noqa: PLC0415

    arguments = parse_arguments(argv)
    repo = environ.get("UWF_REPO")
    if not repo:
        raise BadUsage(
            "UWF_REPO is not set, so there is no store to read the thread from",
            hint="`uwf thread step` sets it; by hand, put the path of the store in it",
        )
    role = arguments.role or environ.get("UWF_ROLE") or None
    context = parse_context(load_thread_context(repo, arguments.thread_id, role=role))
    head = environ.get("UWF_HEAD") or context.head
    if head != context.head:
        raise Refused(
            f"thread {context.thread_id} has moved on: its head is {context.head}, not {head}",
            code="thread-moved",
            hint="let `uwf thread step` call the agent",
            thread=context.thread_id,
            head=head,
            now=context.head,
        )
    # The engine has changed to the work directory, whatever is recorded for the thread.
    return replace(context, workdir=str(Path.cwd()))


_NAMES = {"-t": "thread", "--thread": "thread", "-r": "role", "--role": "role"}


@dataclass(frozen=True, slots=True)
class AgentArguments:
    """The parsed argv of an agent."""

    thread_id: str

    role: str | None
    """None: the convention does not name it; the context does."""

    own: tuple[str, ...]
    """The agent's own words, before the words of the engine."""


def parse_arguments(argv: Sequence[str]) -> AgentArguments:
    """Parse *argv*, without the program; raise BadUsage if there is no thread id."""
    words = list(argv)
    found: dict[str, str] = {}
    while len(words) > 1 and words[-2] in _NAMES and _NAMES[words[-2]] not in found:
        value, option = words.pop(), words.pop()
        found[_NAMES[option]] = value
    if not found and words:
        found["thread"] = words.pop()
    if not found.get("thread"):
        raise BadUsage(
            "no thread id was given",
            hint="the engine calls `<agent> <thread-id>`, or `<agent> -t <thread-id> -r <role>`",
        )
    return AgentArguments(found["thread"], found.get("role"), tuple(words))


@dataclass(frozen=True, slots=True)
class AgentResult:
    """An agent's answer."""

    meta: Any
    """The fields for routing; they have to fit the role's schema."""

    content: str
    """The text for people and the next agents."""

    usage: dict[str, Any] | None = None
    """Its usage; numbers are added up over a thread."""

    state: dict[str, Any] | None = None
    """A JSON merge patch for the thread's state."""

    session: str | None = None
    """The name by which the tool can resume this conversation."""

    rung: str | None = None
    """How the meta was found (ladder.py)."""


def print_result(result: AgentResult, stream: IO[bytes]) -> None:
    """Print *result* on *stream* as the engine reads it, one line of JSON, and flush the stream.

    Half surrogates, from bytes that were not UTF-8, become U+FFFD.
    """
    document = {"meta": result.meta, "content": result.content}
    for name in ("usage", "state", "session", "rung"):
        value = getattr(result, name)
        if value is not None:
            document[name] = value
    try:
        line = json.dumps(document, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())[:200]
        raise AgentFailed(
            f"the result cannot be written as JSON: {problem}",
            code="unprintable-result",
            problem=problem,
        ) from error
    whole = line.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    stream.write(f"{whole}\n".encode())
    stream.flush()


PROMPT = "prompt.md"
FAILURE = "failure.json"
SUBMITTED = "submitted.json"

# Events are for people, who do not need whole files in them.
_LONGEST_TEXT = 4_000
_DEEPEST = 8
_MOST_ITEMS = 200

_MOST_REPORTED = 1024 * 1024

Note = Callable[[Mapping[str, Any]], None]


def write_prompt(step_dir: str | None, prompt: str) -> None:
    """Write the agent's prompt."""
    _write(step_dir, PROMPT, prompt)


def extend_prompt(step_dir: str | None, prompt: str, told: str) -> None:
    """Replace the written *prompt* by *told*, to which an adapter has added words."""
    if step_dir is None or told == prompt or not told.startswith(prompt):
        return
    try:
        with open(os.path.join(step_dir, PROMPT), encoding="utf-8", newline="") as file:
            is_kept = file.read() == prompt.encode(errors="replace").decode()
    except OSError:
        return
    # A correction has another prompt; the step's is the first one.
    if is_kept:
        write_prompt(step_dir, told)


def write_failure(step_dir: str | None, failure: Mapping[str, Any]) -> None:
    """Write why there is no reply (``kind``), and what it cost (``usage``).

    For a rate limit also when it ends, if known (``resetAt``, in milliseconds since 1970).
    """
    # On a full disk, what is said on stderr has to do.
    with suppress(OSError):
        _write(step_dir, FAILURE, json.dumps(failure, default=str) + "\n")


def read_submitted(step_dir: str | None) -> Mapping[str, Any] | None:
    """Return what the agent submitted by the tool ``submit_result``, or None."""
    if step_dir is None:
        return None
    try:
        left = read_left_file(
            os.path.join(step_dir, SUBMITTED), most_bytes=DEFAULT_MAX_OUTPUT_BYTES
        )
        value = json.loads(left.content)
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and "meta" in value else None


def read_reported(
    step_dir: str | None, workdir: str | None, path: str | None
) -> tuple[Any, str] | None:
    """Return what the agent left in *path*, its role's output file, with "" or why it is no JSON.

    None if there is no such file, and without a step: the engine removes that of an earlier try.
    """
    if step_dir is None or workdir is None or path is None:
        return None
    try:
        content = read_below(workdir, path, most_bytes=_MOST_REPORTED)
        if content is None:
            return None
        return parse_strict_json(content.decode("utf-8-sig").strip()), ""
    except BadFileBelow as error:
        return None, error.problem
    except UnicodeDecodeError:
        return None, "is not UTF-8"
    except BadJson as error:
        return None, f"is {error.message}"


@contextmanager
def open_trace(path: str | None) -> Iterator[Note]:
    """Yield a function that adds an event to the trace: a line of JSON with its time.

    On a full disk the event is left out: no answer is lost because of it.
    """
    if not path:
        yield lambda _event: None
        return
    # Unbuffered, since it is read while the step runs.
    with open(path, "ab", buffering=0) as file:

        def note(event: Mapping[str, Any]) -> None:
            line = {"time": time.time_ns() // 1_000_000, **_shorten(event, depth=0)}
            with suppress(OSError):
                file.write(json.dumps(line, default=str).encode() + b"\n")

        yield note


def _write(step_dir: str | None, name: str, text: str) -> None:
    if step_dir is None:
        return
    with open(os.path.join(step_dir, name), "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


def _shorten(value: Any, *, depth: int) -> Any:
    """Return *value* with long texts and deep levels cut."""
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}[… {len(value) - _LONGEST_TEXT:,} characters left out …]"
    if isinstance(value, Mapping | list | tuple) and depth >= _DEEPEST:
        return "[…]"
    if isinstance(value, Mapping):
        items = list(value.items())[:_MOST_ITEMS]
        return {str(name): _shorten(each, depth=depth + 1) for name, each in items}
    if isinstance(value, list | tuple):
        return [_shorten(each, depth=depth + 1) for each in value[:_MOST_ITEMS]]
    return value


def build_prompt(context: AgentContext, *, budget: int = DEFAULT_BUDGET) -> str:
    """Build the prompt of a turn, and record it as the prompt of the step.

    It has the role, the task, the thread so far, and how to answer. *budget* limits task, thread
    and state, in characters; the role's own words and the answer format are never cut.
    """
    prompt = assemble_prompt(context, budget=budget)
    record_prompt(prompt)
    return prompt


def record_prompt(prompt: str) -> None:
    """Record *prompt* as the prompt of the step, for an agent that assembles its own."""
    write_prompt(os.environ.get("UWF_STEP_DIR") or None, prompt)


def trace(event: Mapping[str, Any]) -> None:
    """Add *event* to the trace of the step: an object with a ``type``, and what else there is.

    The ``usage`` of one of the type ``turn`` is shown by live views while the agent is at work.
    """
    with open_trace(os.environ.get("UWF_TRACE")) as note:
        note(event)
