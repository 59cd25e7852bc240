"""What a program did, once it has ended."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ran:
    """Exit status, standard output, standard error."""

    status: int
    out: str
    err: str
