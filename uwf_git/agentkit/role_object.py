"""A role's answer as one object: its words, and its fields.

Owns: the object by which models that are held to a schema give both at once, and reading it.
Knows nothing of: endpoints, who asks.
Always true: words and fields are told apart by the model, not by us.
"""

from typing import Any, NamedTuple

from uwf_git.agentkit.fitting import find_misfit
from uwf_git.agentkit.local_ref import move_schema
from uwf_git.agentkit.wanted import Wanted

GUIDE = (
    "Your answer is taken as one JSON object with two fields. Put into `meta` the fields that the "
    "prompt asks for in front matter, and into `content` the text that it asks for after them: "
    "all that people, and those who work on after you, have to read. There is no front matter."
)

_DESCRIPTION = "Hand in the answer: `content`, its text, and `meta`, its fields."


class RoleAnswer(NamedTuple):
    """The two halves of an answer."""

    content: str
    meta: Any


def wanted_of(schema: dict[str, Any] | bool) -> Wanted:  # noqa: FBT001 (true is a schema, no switch)
    """Build what is wanted of a role whose meta has to fit *schema*."""
    content = {"type": "string", "description": "The whole text of the answer, in Markdown."}
    meta = {} if schema is True else move_schema(schema, "#/properties/meta")
    whole = {
        "type": "object",
        "properties": {"content": content, "meta": meta},
        "required": ["content", "meta"],
        "additionalProperties": False,
    }
    return Wanted(whole, _DESCRIPTION, GUIDE, is_told_in_words=False)


def read_answer(
    value: dict[str, Any] | None,
    schema: dict[str, Any] | bool,  # noqa: FBT001 (true is a schema, no switch)
) -> RoleAnswer | None:
    """Take *value* apart; None if it is no such object.

    The bare fields are taken as well, if they fit: some models see no sense in the other half.
    """
    if value is None:
        return None
    if "meta" in value:
        content = value.get("content")
        return RoleAnswer(content if isinstance(content, str) else "", value["meta"])
    return None if find_misfit(value, schema) else RoleAnswer("", value)
