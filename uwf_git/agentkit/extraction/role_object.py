"""A role's answer as one object, with `content` and `meta`, for models that take a schema."""

from typing import Any, NamedTuple

from uwf_git.agentkit.extraction.check import find_misfit
from uwf_git.agentkit.extraction.local_ref import move_schema
from uwf_git.agentkit.extraction.wanted import WantedObject

GUIDE = (
    "Your answer is taken as one JSON object with two fields. Put into `meta` the fields that the "
    "prompt asks for in front matter, and into `content` the text that it asks for after them: "
    "all that people, and those who work on after you, have to read. There is no front matter."
)

_DESCRIPTION = "Hand in the answer: `content`, its text, and `meta`, its fields."


def add_guide(prompt: str) -> str:
    """Return *prompt* with the instruction to answer with one object."""
    return f"{prompt}\n{GUIDE}\n"


class RoleAnswer(NamedTuple):
    """The two fields of an answer."""

    content: str
    meta: Any


def build_wanted_object(schema: dict[str, Any] | bool) -> WantedObject:  # noqa: FBT001 (true is a schema, no switch)
    """Return the object to request for a role whose meta has to fit *schema*."""
    content = {"type": "string", "description": "The whole text of the answer, in Markdown."}
    meta = {} if schema is True else move_schema(schema, "#/properties/meta")
    whole = {
        "type": "object",
        "properties": {"content": content, "meta": meta},
        "required": ["content", "meta"],
        "additionalProperties": False,
    }
    return WantedObject(whole, _DESCRIPTION, GUIDE, is_told_in_words=False)


def read_answer(
    value: dict[str, Any] | None,
    schema: dict[str, Any] | bool,  # noqa: FBT001 (true is a schema, no switch)
) -> RoleAnswer | None:
    """Return the two fields of *value*; None if it is no such object.

    The bare meta is accepted too, if it fits: some models leave out the content.
    """
    if value is None:
        return None
    if "meta" in value:
        content = value.get("content")
        return RoleAnswer(content if isinstance(content, str) else "", value["meta"])
    return None if find_misfit(value, schema) else RoleAnswer("", value)
