"""The object that is wanted of a model.

Owns: what can be said of it. Knows nothing of: who asks, how it is asked for.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Wanted(NamedTuple):
    """The object that is wanted."""

    schema: Mapping[str, Any]
    """Of an object, with its fields."""

    description: str
    """What it is, in a sentence."""

    guide: str = ""
    """What the model is told besides, wherever it is asked for the object."""

    is_told_in_words: bool = True
    """Whether ``plain`` asks for it as well; otherwise the prompt asks in a way of its own."""
