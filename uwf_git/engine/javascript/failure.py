"""The one error of expressions, for texts that cannot be read and for those without an answer."""

from uwf_git.errors import Refused

_SHOWN = 200


class ExpressionFailed(Refused):
    """An expression or template cannot be read, or has no answer; `position` says where.

    `position` counts the characters of *source* from 1; None if no place is to blame.
    """

    code = "expression-failed"

    def __init__(self, source: str, problem: str, at: int | None) -> None:
        problem = _safe(problem)
        self.problem = problem
        self.position = None if at is None else at + 1
        shown = _one_line(source)
        where = "" if at is None else f" (at character {self.position})"
        super().__init__(
            f"expression `{shown}` failed: {problem}{where}",
            expression=shown,
            problem=problem,
            position=self.position,
        )


class Unanswerable(Exception):
    """What an operation says that has no answer; whoever knows the place adds it."""


def _one_line(text: str) -> str:
    line = " ".join(text[: 2 * _SHOWN].split())
    return _safe(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…")


def _safe(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
