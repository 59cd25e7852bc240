"""JavaScript's undefined, which JSON does not have."""

from enum import Enum
from typing import Final


class Undefined(Enum):
    """The type of UNDEFINED."""

    UNDEFINED = "undefined"

    def __bool__(self) -> bool:
        return False


UNDEFINED: Final = Undefined.UNDEFINED
"""The value of a member that is not there. It is false."""
