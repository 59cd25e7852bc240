"""The object to request from a model: its schema, and the words about it."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class WantedObject(NamedTuple):
    """The object to request from a model."""

    schema: Mapping[str, Any]
    """The JSON Schema of the object."""

    description: str
    """One sentence that describes it."""

    guide: str = ""
    """More words for the model, in every request for the object."""

    is_told_in_words: bool = True
    """Whether the way ``plain`` adds the schema in words; if not, the prompt itself asks."""
