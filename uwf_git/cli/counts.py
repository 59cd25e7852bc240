"""How many: numbers of rows, events and lines as they are typed.

Owns: the option `--limit`, and which numbers are taken. Knows nothing of: what is counted.
Always true: a number that nobody can count to asks for all there is; it is never an error.
"""

from collections.abc import Callable
from typing import Any

import click

_MOST = 2**48
"""More than a disk holds, and the sum of two is still a size to Python."""


class Count(click.IntRange):
    """The type of an option that takes a number of things, *least* or more."""

    def __init__(self, least: int = 1) -> None:
        super().__init__(min=least)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the number."""
        return min(super().convert(value, param, ctx), _MOST)


def limit_option(
    words: str = "How many at most.", *, default: int | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a verb the argument ``limit: int``, or None if nobody said and there is no *default*."""
    return click.option(
        "--limit",
        type=Count(),
        metavar="N",
        default=default,
        show_default=default is not None,
        help=words,
    )
