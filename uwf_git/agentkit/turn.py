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
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from uwf_git.agents.command_line import DEFAULT_MAX_OUTPUT_BYTES
from uwf_git.agents.files import read_json_below, read_left_file
from uwf_git.engine.prompt import DEFAULT_BUDGET
from uwf_git.engine.prompt import build_prompt as assemble_prompt
from uwf_git.engine.turn_context import AgentContext, parse_context
from uwf_git.errors import AgentFailed, BadUsage, Refused
from uwf_git.model.text import parse_float, plain_key

# The settings of an adapter, from five sources; the more specific one wins.
#
# 1. the adapter's command line: ``uwf-claude --model opus``
# 2. the environment: ``UWF_CLAUDE_MODEL``
# 3. git config for the role: ``uwf.claude.reviewer.model``
# 4. git config: ``uwf.claude.model``
# 5. for the model alone, the environment for all adapters: ``UWF_MODEL``
#
# The store's git config is read over the user's. What it sets of these runs no program, gives no
# permission and sends no key elsewhere, unless the user trusts it: a store may come from anywhere.
# A fetched thread or workflow cannot set anything.

if TYPE_CHECKING:
    from uwf_git.store.git.config import GitConfig


KEYS: dict[str, str] = {
    "model": "the model to use, as the program names it",
    "permission": "what the program may do without asking, as it names it",
    "args": "more arguments for the program, split as a shell would",
    "program": "the path of the program, if its name is not on the PATH",
    "env": "more variables that it may see, such as `JAVA_HOME NODE_*`",
    "timeout": "the most seconds for one answer",
    "silence": "the most seconds in which it may print nothing",
    "resume": "visits: resume the role's conversation; a failed try, poke, fork or branch begins "
    "anew",
}

# Longer waits are more than sockets and clocks can count.
_A_YEAR_S = 365 * 24 * 3600.0

_HARMLESS = {
    "maxtokens", "mcp", "model", "resume", "schema", "silence", "temperature", "timeout", "tokens",
    "turns",
}  # fmt: skip
"""What a store may set untrusted, as ``plain_key`` returns it."""


def load_settings(
    adapter: str, role: str, *, environ: Mapping[str, str], words: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings of *adapter* for *role* by their plain keys; *words* are typed ones."""
    # Part of the store, which is imported only when a context is loaded.
    from uwf_git.store.git.config import (  # noqa: PLC0415 (as above)
        add_user_config,
        read_config_file,
        read_user_config,
    )

    git_dir = environ.get("UWF_REPO")
    user = config = read_user_config(environ)
    if git_dir:
        own = read_config_file(os.path.join(git_dir, "config"))
        config = add_user_config(git_dir, own, environ, user=user)
    found = _find_configured(adapter, role, config)
    if environ.get("UWF_MODEL"):
        found.setdefault("model", _Found(environ["UWF_MODEL"]))
    front = f"UWF_{adapter}_".upper().replace("-", "_")
    given = {
        name.removeprefix(front): value
        for name, value in environ.items()
        if name.startswith(front) and value
    }
    for key, value in [*given.items(), *words.items()]:
        found[plain_key(key)] = _Found(value)
    doubtful = [
        each.name
        for key, each in found.items()
        if key not in _HARMLESS and each.name and each.value not in user.get_all(each.name)
    ]
    if git_dir and doubtful:
        # What is not the user's own has to be trusted for the current directory.
        from uwf_git.store import store, trust  # noqa: PLC0415 (as above)

        opened = store.open_store(git_dir, environ=environ)
        for name in doubtful:
            trust.require_trusted(opened, name, os.getcwd())
    return {key: each.value for key, each in found.items()}


class _Found(NamedTuple):
    value: str
    name: str | None = None
    """Its full name in git config; None: it comes from elsewhere."""


def _find_configured(adapter: str, role: str, config: "GitConfig") -> dict[str, _Found]:
    """Return the settings in git config by their plain keys; those of the role come first."""
    found: dict[str, _Found] = {}
    for section in (f"uwf.{adapter}", f"uwf.{adapter}.{role}"):
        for name, values in config.values.items():
            # The last dot ends the section; a role's name may contain dots.
            front, _, key = name.rpartition(".")
            if front == section:
                found[plain_key(key)] = _Found(values[-1], name)
    return found


def parse_words(own: Sequence[str], *, keys: Sequence[str], word: str | None) -> dict[str, str]:
    """Parse ``--key value`` or ``--key=value``, for *keys*, and a positional *word*."""
    words = list(own)
    found: dict[str, str] = {}
    while words:
        first = words.pop(0)
        if not first.startswith("--"):
            if word is None or word in found:
                raise BadUsage(f"unexpected word {first:.200}", hint=_hint(keys))
            found[word] = first
            continue
        key, is_joined, value = first[2:].partition("=")
        if key not in keys:
            raise BadUsage(f"no setting is called {first:.200}", hint=_hint(keys))
        if not is_joined and not words:
            raise BadUsage(f"--{key} needs a value", hint=f"for example: --{key} VALUE")
        found[key] = value if is_joined else words.pop(0)
    return found


def parse_seconds(settings: Mapping[str, str], key: str) -> float | None:
    """Return the setting *key* as seconds, a year at most; None if it is not set."""
    text = settings.get(key)
    if not text:
        return None
    seconds = parse_float(text)
    if not seconds:
        raise BadUsage(f"{key} is {text!r:.100}, not a number of seconds", hint=f"{key}=600")
    return min(seconds, _A_YEAR_S)


def choose_permission(settings: Mapping[str, str], known: Collection[str]) -> str:
    """Return the setting ``permission``, one of *known*; the first of them is the default."""
    first, *others = known
    permission = settings.get("permission") or first
    if permission not in known:
        hint = f"permission={first}, or {', '.join(others)}"
        raise BadUsage(f"permission is {permission!r:.100}", hint=hint)
    return permission


def split_args(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the setting ``args`` as words."""
    try:
        return tuple(shlex.split(settings.get("args", "")))
    except ValueError as error:
        problem = f"args cannot be split into words: {str(error).lower()}"
        raise BadUsage(problem, hint="write them as you would in a shell") from error


def _hint(keys: Sequence[str]) -> str:
    return f"settings are {', '.join('--' + key for key in keys)}"


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


class AgentArguments(NamedTuple):
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
    path = os.path.join(step_dir, SUBMITTED)
    try:
        value = json.loads(read_left_file(path, most_bytes=DEFAULT_MAX_OUTPUT_BYTES).content)
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
    return read_json_below(workdir, path, most_bytes=1024 * 1024)


@contextmanager
def open_trace(path: str | None) -> Iterator[Note]:
    """Yield a function that adds an event to the trace: a line of JSON with its time.

    On a full disk the event is left out: no answer is lost because of it.
    """
    if not path:
        yield lambda _event: None
        return
    # Unbuffered, since it is read while the step runs.
    with open(path, "ab", buffering=0, opener=_open_here) as file:

        def note(event: Mapping[str, Any]) -> None:
            line = {"time": time.time_ns() // 1_000_000, **_shorten(event, depth=0)}
            with suppress(OSError):
                file.write(json.dumps(line, default=str).encode() + b"\n")

        yield note


def _write(step_dir: str | None, name: str, text: str) -> None:
    if step_dir is None:
        return
    path = os.path.join(step_dir, name)
    with open(path, "w", encoding="utf-8", errors="replace", opener=_open_here) as file:
        file.write(text)


def _open_here(path: str, flags: int) -> int:
    # Who shares the store could put a link there, to what only this user may write.
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


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

    The ``usage`` of one of the type ``turn`` is shown by live views while the agent is at work, and
    counts if neither the answer nor ``failure.json`` has a usage.
    """
    with open_trace(os.environ.get("UWF_TRACE")) as note:
        note(event)


# The interface of adapters: a question, an answer, a failure.
#
# An adapter drives one agent program or model. It answers only from the program's own final record,
# never because of an exit status alone.

FailureKind = Literal[
    "missing", "usage", "auth", "rate-limit", "model-error", "refused-permission", "no-session",
    "no-result", "bad-output", "too-long", "timed-out", "silent", "too-much-output",
    "interrupted", "crashed",
]  # fmt: skip
"""``no-session``: lost; ``no-result``: no final record; ``bad-output``: an unreadable record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterQuestion:
    """One question to an adapter."""

    prompt: str

    schema: dict[str, Any] | bool | None = None
    """The JSON Schema of the meta, for programs that take one; None to ask in words."""

    session: str | None = None
    """The conversation to resume; None starts a new one."""

    spent: Mapping[str, Any] = field(default_factory=dict)
    """What that conversation has cost so far, for programs that report its whole usage."""

    workdir: str = "."
    step_dir: str | None = None
    """A folder for the files of this step; None: the adapter makes a temporary one."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings of this program: ``model``, ``permission``, ``args``, …."""

    environ: Mapping[str, str] = field(default_factory=dict)

    timeout_s: float | None = None
    silence_s: float | None = None
    """How long it may print nothing before it is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterAnswer:
    """The answer of an adapter's program."""

    text: str

    structured: Any = None
    """The meta, if the program reports it as an object; else None."""

    session: str | None = None

    usage: Mapping[str, Any] = field(default_factory=dict)
    """Of this question alone, as far as the program reports it: ``inputTokens``, ``outputTokens``,
    ``cachedInputTokens``, ``reasoningTokens``, ``costUsd``, ``turns``. An unknown number is left
    out, not 0."""

    trace: tuple[Mapping[str, Any], ...] = ()
    """What it did, as objects with a ``type``; tests/agentkit/traces.py lists their keys."""


class AskFailed(AgentFailed):
    """The program or model gave no complete answer."""

    code = "ask-failed"

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        partial: AdapterAnswer | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message, code=code, hint=hint, kind=kind, **facts)
        self.kind = kind
        self.partial = partial


def classify_status(status: int) -> FailureKind:
    """Return the kind of failure for an HTTP status of a model's endpoint."""
    return _STATUSES.get(status, "model-error")


_STATUSES: dict[int, FailureKind] = {
    401: "auth",
    402: "auth",
    403: "auth",
    413: "too-long",
    429: "rate-limit",
}


class Adapter(Protocol):
    """Drives one program or model."""

    @property
    def name(self) -> str:
        """The name of the program in settings and messages."""

    @property
    def takes_schema(self) -> bool:
        """Whether it takes a JSON Schema and returns the object."""

    @property
    def resumes(self) -> bool:
        """Whether it can resume a conversation."""

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        """Ask, and wait for the answer."""
