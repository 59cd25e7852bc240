"""Runs of the shipped patterns: what scripted agents say, and which steps follow from it."""

from typing import Any, NamedTuple

Turns = list[dict[str, Any]]
"""The turns of a role, as uwf-mock plays them: the last one repeats."""


class PatternRun(NamedTuple):
    """One run of a pattern."""

    pattern: str
    script: dict[str, Turns]
    steps: list[str]
    """The roles that act, those of branches in their order, and the joins by their names."""

    stopped: str = "end"


def says(content: str = "Done.", **meta: Any) -> dict[str, Any]:
    """Return a turn."""
    return {"meta": meta, "content": content}


_KINDS = {role: [says(summary="done")] for role in ("answerer", "fixer", "designer")}
_SIDES = ["correctness", "safety", "cost"]
_VOTERS = ["first", "second", "third"]


def _votes(*votes: bool) -> dict[str, Turns]:
    said = zip(_VOTERS, votes, strict=True)
    return {name: [says(yes=vote, reason=f"says {name}")] for name, vote in said}


RUNS = [
    PatternRun(
        "pipeline",
        {"outliner": [says(clear=True, points=["what", "why"])], "writer": [says("A text.")]}
        | {"editor": [says("A better text.")]},
        ["outliner", "writer", "editor"],
    ),
    PatternRun("pipeline", {"outliner": [says(clear=False, points=[])]}, ["outliner"]),
    *(
        PatternRun("route", {"router": [says(kind=kind, why="it says so")], **_KINDS}, steps)
        for kind, steps in {
            "bug": ["router", "fixer"],
            "change": ["router", "designer"],
            "question": ["router", "answerer"],
        }.items()
    ),
    PatternRun(
        "fan-out",
        {side: [says(findings=[f"a fault of {side}"])] for side in _SIDES}
        | {"summarizer": [says("Three faults.")]},
        [*_SIDES, "sides", "summarizer"],
    ),
    PatternRun(
        "vote",
        {**_votes(True, False, True), "reporter": [says("Yes.")]},  # noqa: FBT003 (votes)
        [*_VOTERS, "voters", "reporter"],
    ),
    PatternRun(
        "orchestrate",
        {
            "orchestrator": [
                says(parts=[{"title": each, "work": "Do it."} for each in ("one", "two")])
            ],
            "worker": [says("A part.")],
            "uniter": [says("The whole.")],
        },
        ["orchestrator", "worker", "worker", "parts", "uniter"],
    ),
    PatternRun(
        "review-loop",
        {
            "author": [says("A version.")],
            "reviewer": [says(approved=False, points=["too long"]), says(approved=True, points=[])],
        },
        ["author", "reviewer"] * 2,
    ),
    PatternRun(
        "review-loop",
        {"author": [says("A version.")], "reviewer": [says(approved=False, points=["no"])]},
        ["author", "reviewer"] * 4,
    ),
    PatternRun(
        "approve",
        {"planner": [says("A plan.")], "executor": [says("Done as planned.")]},
        ["planner", "person"],
        stopped="waiting",
    ),
    PatternRun(
        "until-done",
        {
            "worker": [says(notes="one is done"), says(notes="two are done")],
            "checker": [says(ok=False), says(ok=True)],
        },
        ["worker", "checker"] * 2,
    ),
]

PATTERNS = sorted({run.pattern for run in RUNS})
