"""Load the context of the turn for which an agent was called, by the arguments of its call.

The engine appends them to an agent's command: ``<command> <thread-id>``, or ``<command> -t
<thread-id> -r <role>``. They are parsed from the end, so an agent's own options cannot be mistaken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from uwf_git.engine.turn_context import AgentContext, parse_context
from uwf_git.errors import BadUsage, Refused


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
