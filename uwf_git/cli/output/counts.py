"""Counts of rows, events and lines, as in `--limit`; one that is too large means all."""

from collections.abc import Callable
from typing import Any

import click

_MOST = 2**48
"""More than a disk holds, and the sum of two is still a size to Python."""


class Count(click.IntRange):
    """The type of an option that takes a count, *least* or more."""

    def __init__(self, least: int = 1) -> None:
        super().__init__(min=least)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the number."""
        return min(super().convert(value, param, ctx), _MOST)


def limit_option(
    words: str = "The most rows to print.", *, default: int | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the argument ``limit: int`` to a verb; without *default* it may be None."""
    return click.option(
        "--limit",
        type=Count(),
        metavar="N",
        default=default,
        show_default=default is not None,
        help=words,
    )


def count_by_status(counts: dict[str, int]) -> str:
    """Return the numbers of branches in words: ``2 running, 1 failed``."""
    return ", ".join(f"{number} {status}" for status, number in counts.items())
