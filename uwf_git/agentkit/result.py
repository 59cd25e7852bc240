"""The result of an agent, and its JSON: one whole object is printed, or nothing."""

import json
from dataclasses import dataclass
from typing import IO, Any

from uwf_git.errors import AgentFailed


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


def render_result(result: AgentResult) -> bytes:
    """Return *result* as the engine reads it: one line of JSON.

    Half surrogates in the content, from bytes that were not UTF-8, become U+FFFD.
    """
    content = result.content.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    document = {"meta": result.meta, "content": content}
    for name in ("usage", "state", "session", "rung"):
        value = getattr(result, name)
        if value is not None:
            document[name] = value
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())[:200]
        raise AgentFailed(
            f"the result cannot be written as JSON: {problem}",
            code="unprintable-result",
            problem=problem,
        ) from error


def print_result(result: AgentResult, stream: IO[bytes]) -> None:
    """Print *result* on *stream*, and flush it."""
    stream.write(render_result(result))
    stream.flush()
