"""Check all conditions and schemas of one workflow file in one limited child process.

Hostile ones take for ever, and the file may hold any number of them. So the file is read twice:
first to collect them, then with the answers.
"""

import mmap
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from uwf_git.agents.limited_fork import RunLimits, run_limited
from uwf_git.engine.expression import check_condition
from uwf_git.engine.flow_text import check_flow_text
from uwf_git.errors import Refused
from uwf_git.model.definition.definition import FlowText
from uwf_git.model.definition.findings import InvalidWorkflow
from uwf_git.model.definition.roles import CheckSchema
from uwf_git.model.problem import Problem
from uwf_git.model.schema_check import check_schema

MOST_CONDITIONS = 1_000

LIMITS = RunLimits(cpu_s=5, wall_s=10.0)
_WHAT = "the check of the conditions and schemas"
_TOO_MANY = f"is one condition too many: a workflow has at most {MOST_CONDITIONS:,} different ones"

CheckText = Callable[[str | FlowText], str | None]
"""Check a condition of a graph, or a text of a flow."""

T = TypeVar("T")


def read_with_checks(
    read: Callable[[CheckText, CheckSchema], T], *, limits: RunLimits = LIMITS
) -> T:
    """Return what *read* returns, given functions that check a condition and a schema.

    *read* is called twice and has to ask the same both times. It raises as *read* does.
    """
    parts = _Parts()
    with suppress(InvalidWorkflow):
        # All problems are found below.
        read(parts.collect_condition, parts.collect_schema)
    parts.check(limits)
    return read(parts.tell_condition, parts.tell_schema)


class _Parts:
    """The conditions and schemas of one file, and what is wrong with them."""

    def __init__(self) -> None:
        self._conditions: dict[str | FlowText, str | None] = {}
        self._schemas: list[Any] = []
        self._problems: list[list[Problem]] = []

    def collect_condition(self, condition: str | FlowText) -> None:
        if len(self._conditions) < MOST_CONDITIONS:
            self._conditions[condition] = None

    def collect_schema(self, schema: Any) -> list[Problem]:
        self._schemas.append(schema)
        return []

    def tell_condition(self, condition: str | FlowText) -> str | None:
        return self._conditions.get(condition, _TOO_MANY)

    def tell_schema(self, _schema: Any) -> list[Problem]:
        # In the order in which they were collected.
        return self._problems.pop(0)

    def check(self, limits: RunLimits) -> None:
        """Check everything; if a limit is hit, that is the problem of what was checked then."""
        conditions = list(self._conditions)
        self._problems = [[] for _schema in self._schemas]
        if not conditions and not self._schemas:
            return
        # Shared with the child, which does not answer once a limit ends it.
        with mmap.mmap(-1, 8) as progress:

            def check() -> list[Any]:
                found: list[Any] = []
                for number, condition in enumerate(conditions):
                    progress[:] = number.to_bytes(8)
                    found.append(_check(condition))
                for number, schema in enumerate(self._schemas, len(conditions)):
                    progress[:] = number.to_bytes(8)
                    found.append([[each.path, each.message] for each in check_schema(schema)])
                return found

            try:
                found = run_limited(check, limits=limits, what=_WHAT)
            except Refused as error:
                self._blame(int.from_bytes(progress[:]), error)
                return
        self._conditions = dict(zip(conditions, found, strict=False))
        told = found[len(conditions) :]
        self._problems = [[Problem(*each) for each in problems] for problems in told]

    def _blame(self, number: int, error: Refused) -> None:
        names = list(self._conditions)
        if number < len(names):
            self._conditions[names[number]] = error.message
        else:
            self._problems[number - len(names)].append(Problem("", error.message))


def _check(condition: str | FlowText) -> str | None:
    return check_condition(condition) if isinstance(condition, str) else check_flow_text(condition)
