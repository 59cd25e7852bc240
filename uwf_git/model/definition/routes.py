"""Routes: check that a graph leads from the start to every role, and from each to the end.

A condition may turn out either way, so every transition counts.
"""

from collections.abc import Iterable, Mapping, Sequence

from uwf_git.model.definition.findings import Findings
from uwf_git.model.definition.graph import GraphReading
from uwf_git.model.transition import END, START


def check_routes(findings: Findings, reading: GraphReading, *, roles: Sequence[str]) -> None:
    """Report roles that cannot be reached or left, and a graph that cannot begin or end."""
    if not reading.entries.get(START):
        place = reading.places.get(START, reading.path)
        findings.add(place, "no transition leads out of $START, so no thread could begin")
        return
    ways = {
        name: {transition.to for transition in transitions}
        for name, transitions in reading.entries.items()
    }
    reached = _reach(ways, [START])
    for role in roles:
        if role not in reached:
            findings.add(("roles", role), "no path from $START leads to this role")
    _check_ends(findings, reading, ways=ways, reached=[name for name in roles if name in reached])


def _check_ends(
    findings: Findings,
    reading: GraphReading,
    *,
    ways: Mapping[str, set[str]],
    reached: Sequence[str],
) -> None:
    dead_ends = [role for role in reached if not ways.get(role)]
    for role in dead_ends:
        place = reading.places.get(role, ("roles", role))
        findings.add(
            place, f"{role} has no outgoing transition; add one, to $END if it is the last"
        )
    # A dead end is reported already; roles that lead to it are not reported again.
    leads_back = _reversed(ways)
    ending = _reach(leads_back, [END, *dead_ends])
    if START not in ending:
        findings.add(reading.path, "no path from $START reaches $END, so no thread would ever end")
        return
    for role in reached:
        if role not in ending:
            place = reading.places.get(role, ("roles", role))
            findings.add(place, f"no path from {role} reaches $END, so a thread could not leave it")


def _reach(ways: Mapping[str, Iterable[str]], starts: Iterable[str]) -> set[str]:
    reached: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += ways.get(name, ())
    return reached


def _reversed(ways: Mapping[str, set[str]]) -> dict[str, set[str]]:
    back: dict[str, set[str]] = {}
    for source, targets in ways.items():
        for target in targets:
            back.setdefault(target, set()).add(source)
    return back
