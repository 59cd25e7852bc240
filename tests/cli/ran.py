"""The result of a program that has ended."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ran:
    """Exit status, standard output, standard error."""

    status: int
    out: str
    err: str
