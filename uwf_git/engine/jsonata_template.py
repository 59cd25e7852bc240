"""Templates of flows in JSONata: where the expressions in a text begin and end.

JSONata's own braces, strings and comments may hold a ``}``, so an expression ends at the first
``}`` before which the text is an expression.
"""

from collections.abc import Callable
from typing import NamedTuple

from uwf_git.engine.expression import SOURCE_BYTES

CheckExpression = Callable[[str], str | None]
"""Return what is wrong with an expression, or None."""

_MOST_ENDS = 100


class Piece(NamedTuple):
    text: str
    is_expression: bool = False


def split_template(source: str, check: CheckExpression) -> tuple[Piece, ...]:
    r"""Return the pieces of *source* in order; ``\${`` is a literal ``${``."""
    pieces: list[Piece] = []
    literal, at = "", 0
    while (start := source.find("${", at)) >= 0:
        if start > at and source[start - 1] == "\\":
            literal, at = literal + source[at : start - 1] + "${", start + 2
            continue
        literal += source[at:start]
        end = _find_end(source, start + 2, check)
        pieces += [Piece(literal)] if literal else []
        pieces.append(Piece(source[start + 2 : end], is_expression=True))
        literal, at = "", end + 1
    literal += source[at:]
    return (*pieces, *([Piece(literal)] if literal else []))


def _find_end(source: str, start: int, check: CheckExpression) -> int:
    end, problem = start - 1, None
    for _count in range(_MOST_ENDS):
        end = source.find("}", end + 1)
        if end < 0 or end - start > SOURCE_BYTES:
            break
        found = check(source[start:end]) if source[start:end].strip() else "it is empty"
        if found is None:
            return end
        problem = problem or found
    raise ValueError(f"in ${{{source[start : start + 40]}: {problem or 'no } ends it'}")
