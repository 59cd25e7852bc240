"""Results: what an agent hands back, and how it is printed.

Owns: the value and its JSON. Knows nothing of: where the meta came from.
Always true: what was printed is one JSON object in UTF-8, or nothing was printed.
"""

import json
from dataclasses import dataclass
from typing import IO, Any

from uwf_git.errors import AgentFailed


class UnprintableResult(AgentFailed):
    """The result holds what JSON cannot."""

    code = "unprintable-result"

    def __init__(self, problem: str) -> None:
        super().__init__(f"the result cannot be written as JSON: {problem}", problem=problem)


@dataclass(frozen=True, slots=True)
class AgentResult:
    """An agent's answer."""

    meta: Any
    """What routing sees; it has to fit the role's schema."""

    content: str
    """What people and the next agents read."""

    usage: dict[str, Any] | None = None
    """What it cost: numbers are added up over a thread."""

    state: dict[str, Any] | None = None
    """A JSON merge patch for the thread's state."""

    session: str | None = None
    """The name under which the tool can go on with this conversation."""

    rung: str | None = None
    """How the meta was found (ladder.py)."""


def render_result(result: AgentResult) -> bytes:
    """Write *result* as the engine reads it: one line of JSON.

    Half surrogates in the content, left over from bytes that were no text, become U+FFFD.

    Raises:
        UnprintableResult: a value that JSON does not have.
    """
    document = {"meta": result.meta, "content": _whole_characters(result.content)}
    for name in ("usage", "state", "session", "rung"):
        value = getattr(result, name)
        if value is not None:
            document[name] = value
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise UnprintableResult(" ".join(str(error).split())[:200]) from error


def print_result(result: AgentResult, stream: IO[bytes]) -> None:
    """Print *result* on *stream*, all of it, before coming back.

    Raises:
        UnprintableResult: a value that JSON does not have; nothing was printed.
        OSError: the stream would not take it.
    """
    stream.write(render_result(result))
    stream.flush()


def _whole_characters(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
