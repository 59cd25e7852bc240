"""Print a failure: lines for people, or one JSON object for programs.

Printing never raises, whatever the facts hold, and nothing in them can move the cursor.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.cli.app.failure import Failure
from uwf_git.cli.session.streams import wants_stderr_colour, write_stderr
from uwf_git.model.problem import Problem
from uwf_git.model.text import one_line, visible_line

_NO_VARIABLES: Mapping[str, str] = {}

# The last lines of an agent's output or of a trace say most.
_MOST_LINES = 20


def tell(failure: Failure, *, as_json: bool, environ: Mapping[str, str] = _NO_VARIABLES) -> None:
    """Write *failure* to standard error, where *environ* allows it in colour."""
    if as_json:
        write_stderr(_as_json(failure))
        return
    write_stderr(_as_text(failure, has_colour=wants_stderr_colour(environ)))


def _as_json(failure: Failure) -> str:
    from uwf_git.cli.output.json_text import render_json  # noqa: PLC0415 (text needs no json)

    told = {"code": failure.code, "message": failure.message, "hint": failure.hint}
    facts = {name: _fact(fact) for name, fact in failure.facts.items() if name not in told}
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        return render_json({"error": told | facts}, ascii_only=True, default=str)
    # A fact that JSON cannot hold must not hide the error.
    return render_json({"error": told}, ascii_only=True)


def _fact(fact: Any) -> Any:
    """Return problems as objects: JSON would write these tuples as arrays."""
    if not isinstance(fact, list | tuple):
        return fact
    return [each.as_document() if isinstance(each, Problem) else each for each in fact]


def _as_text(failure: Failure, *, has_colour: bool) -> str:
    title, *more = failure.lines or [failure.message]
    red, dim, end = ("\x1b[31m", "\x1b[2m", "\x1b[0m") if has_colour else ("", "", "")
    lines = [f"{red}error:{end} {one_line(title)}", *(f"  {one_line(line)}" for line in more)]
    for name, fact in failure.facts.items():
        if name == "problems" and isinstance(fact, list | tuple):
            lines += _problem_lines(_fact(fact), failure.message)
        elif isinstance(fact, str) and "\n" in fact.strip():
            last = fact.strip("\n").split("\n")[-_MOST_LINES:]
            lines += [f"  {visible_line(line)}" for line in last]
    if failure.hint:
        lines.append(f"{dim}hint: {one_line(failure.hint)}{end}")
    return "\n".join(lines) + "\n"


def _problem_lines(problems: list[Any], message: str) -> Iterator[str]:
    for problem in problems:
        if not isinstance(problem, Mapping):
            yield f"  {one_line(str(problem))}"
            continue
        what = str(problem.get("message"))
        if len(problems) == 1 and what in message:
            return
        line = problem.get("line")
        where = f"line {line}" if line is not None else ""
        if file := problem.get("file"):
            where = f"{file}:{line}" if line is not None else str(file)
        places = [where, str(problem.get("path") or ""), what]
        yield "  " + ": ".join(one_line(place) for place in places if place)
