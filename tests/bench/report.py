"""Write figures, limits and failures as tables and as JSON.

A limit is reported, never enforced. A case that failed has its reason in place of figures, and the
other cases keep theirs.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_GAP = "  "


class Limit(NamedTuple):
    """The most that a figure should be."""

    figure: str
    most: float


class Row(NamedTuple):
    """One case of a table."""

    name: str
    figures: Mapping[str, float | None]
    limits: Sequence[Limit] = ()
    failure: str | None = None

    def as_document(self) -> dict[str, Any]:
        """Return it as JSON."""
        document: dict[str, Any] = {"name": self.name, **self.figures}
        limits = [{**limit._asdict(), "is_met": self.is_met(limit)} for limit in self.limits]
        if limits:
            document["limits"] = limits
        if self.failure is not None:
            document["failure"] = self.failure
        return document

    def is_met(self, limit: Limit) -> bool | None:
        """Check whether the figure keeps to *limit*; None if there is no such figure."""
        figure = self.figures.get(limit.figure)
        return None if figure is None else figure <= limit.most


class Table(NamedTuple):
    """The results of one part."""

    title: str
    rows: Sequence[Row]

    def as_document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"title": self.title, "rows": [row.as_document() for row in self.rows]}


def render_json(
    ran_on: Mapping[str, Any], tables: Mapping[str, Sequence[Table]], *, is_quick: bool
) -> str:
    """Write everything as one JSON document."""
    parts = {name: [table.as_document() for table in part] for name, part in tables.items()}
    return json.dumps({"ran_on": ran_on, "is_quick": is_quick, "parts": parts}, indent=2) + "\n"


def render_facts(facts: Mapping[str, Any]) -> str:
    """Write the description of the machine, one fact a line."""
    width = max(map(len, facts))
    return "".join(f"{name:{width}}{_GAP}{_fact(fact)}\n" for name, fact in facts.items())


def render_table(table: Table) -> str:
    """Write a table in columns."""
    keys = list(dict.fromkeys(key for row in table.rows for key in row.figures))
    lines = [["", *(key.replace("_", " ") for key in keys), ""]]
    for row in table.rows:
        figures = [_figure(row.figures.get(key)) for key in keys]
        lines.append([row.name, *figures, row.failure or _verdicts(row)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(keys) + 1)]
    shown = [_GAP.join([*_aligned(line[:-1], widths), line[-1]]).rstrip() for line in lines]
    return "\n".join([table.title, *shown]) + "\n"


def _aligned(cells: list[str], widths: list[int]) -> list[str]:
    name, *figures = cells
    right = [f"{cell:>{width}}" for cell, width in zip(figures, widths[1:], strict=True)]
    return [f"{name:{widths[0]}}", *right]


def _verdicts(row: Row) -> str:
    words = {True: "met", False: "MISSED", None: "not measured"}
    return "; ".join(
        f"{limit.figure.replace('_', ' ')} ≤ {limit.most:g}: {words[row.is_met(limit)]}"
        for limit in row.limits
    )


def _figure(figure: float | None) -> str:
    if figure is None:
        return ""
    places = 0 if abs(figure) >= 100 else 1 if abs(figure) >= 10 else 2
    return f"{figure:,.{places}f}"


def _fact(fact: Any) -> str:
    if isinstance(fact, list):
        return ", ".join(map(_fact, fact))
    return _figure(fact) if isinstance(fact, float) else str(fact)
