"""What is said to a model, and what it says, whatever the endpoint's own words for it.

Owns: the values of a conversation. Knows nothing of: HTTP, any provider.
Always true: what a model said goes back to it as it came (``echo``): providers sign parts of it.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple


class Tool(NamedTuple):
    """A function that a model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """The JSON Schema of its arguments: an object."""


class Call(NamedTuple):
    """A call of a tool."""

    id: str
    name: str
    arguments: dict[str, Any] | None
    """None: what the model wrote there is no JSON object."""


class Outcome(NamedTuple):
    """What came of a call."""

    call_id: str
    text: str
    is_error: bool = False


class Told(NamedTuple):
    """What we said."""

    text: str


class Said(NamedTuple):
    """What the model said."""

    text: str
    calls: tuple[Call, ...]
    echo: Mapping[str, Any]
    """The message as the endpoint gave it, as far as it takes it back."""


class Outcomes(NamedTuple):
    """What came of all the calls of a turn."""

    outcomes: tuple[Outcome, ...]
    note: str = ""
    """What we said besides."""


Message = Told | Said | Outcomes


class ObjectShape(NamedTuple):
    """The answer has to be JSON."""

    schema: Mapping[str, Any] | None
    """A strict schema; None: any object."""


class ModelRequest(NamedTuple):
    """One question, with all that was said before."""

    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    forced: str | None = None
    """The one tool that has to be called."""

    shape: ObjectShape | None = None


Stop = Literal["end", "too-long", "filtered"]


class ModelReply(NamedTuple):
    """What came back."""

    said: Said
    stop: Stop
    usage: Mapping[str, Any]
    model: str
    """Which model says that it answered."""


def read_object(text: str) -> dict[str, Any] | None:
    """Read *text* as one JSON object, in a code fence or not; None if it is none.

    Words around it are tolerated where the object is the only one: models explain themselves.
    """
    # Brings the canonical form's library along.
    from uwf_git.agents.strict_json import BadJson, parse_json  # noqa: PLC0415 (see above)

    bare = text.strip(" \t\r\n\ufeff")
    inner = bare[bare.find("{") : bare.rfind("}") + 1]
    for candidate in (bare, inner):
        if not candidate.startswith("{"):
            continue
        try:
            value = parse_json(candidate)
        except BadJson:
            continue
        if isinstance(value, dict):
            return value
    return None
