"""The marks of a thread: where it is, how often each role ran, what failed, who waits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from uwf_git.engine.picture.plan import Mark, MarkState, merge_marks
from uwf_git.model.flow import Flow, Position
from uwf_git.model.workflow import END, START

_STANDS: Mapping[str, tuple[MarkState, str, str]] = {
    "waiting": ("waits", "? person", "waits for a person"),
    "failed": ("failed", "✗ failed", "failed"),
    "paused": ("paused", "‖ paused", "is next, and the thread is paused"),
    "split": ("now", "▶ branches", "has split into branches"),
    "killed": ("stopped", "✗ killed", "was here when the thread was killed"),
    "completed": ("done", "✓", "is the last"),
}


class Progress(NamedTuple):
    status: str
    visits: Mapping[str, int]
    """Role → number of its steps."""

    turn: str | None = None
    """The role at work, or whose turn it is, or ``$END``; None: ended, or undecidable."""

    attempts: int = 0
    """Failed tries since the newest step."""

    is_at_work: bool = False
    waits_for_limit: bool = False
    """It waits for the end of a limit, not for a person."""

    last: str = START

    tried: str = ""
    """Of a node that is verified: which try it is, and whose turn, after the first work."""

    steps_at: Mapping[str, int] = MappingProxyType({})
    """Place → number of its steps, for the roles of ``list_shared_roles``."""

    given_up: Mapping[str, str] = MappingProxyType({})
    """Place where a branch began that the thread went on without → its error."""


def mark_roles(progress: Progress) -> dict[str, Mark]:
    marks = {
        role: Mark("done", f"✓ {number}", f"ran {_times(number)}")
        for role, number in progress.visits.items()
        if number
    }
    if progress.status == "completed":
        marks[END] = Mark("done", "✓ completed", "the thread is completed")
    elif progress.turn is not None:
        marks[progress.turn] = _mark_here(progress, marks.get(progress.turn))
    elif progress.status != "ready":
        marks[progress.last] = _mark_here(progress, marks.get(progress.last))
    return marks


def mark_places(
    flow: Flow, progress: Progress, position: Position | None, *, within: str | None = None
) -> dict[str, Mark]:
    """Return the marks of a flow's places; *position* is where the thread stands.

    A branch marks only places *within* the place where it begins. The loops around the position
    tell their pass.
    """
    shared = list_shared_roles(flow)
    marks = {}
    for place, node in flow.nodes.items():
        if node.kind == "agent":
            # The steps of a verifier are no steps of the work.
            role = node.agent
            number = progress.steps_at.get(place) if role in shared else progress.visits.get(role)
            if number:
                marks[place] = Mark("done", f"✓ {number}", f"ran {_times(number)}")
    for place, error in progress.given_up.items():
        marks[place] = Mark("stopped", "✗ given up", f"was given up: {error}")
    if progress.status == "completed":
        marks[END] = Mark("done", "✓ completed", "the thread is completed")
    elif progress.turn == END:
        marks[END] = _mark_here(progress, None)
    elif position is not None:
        marks |= _mark_passes(flow, position)
        marks[position.place] = _mark_here(progress, marks.get(position.place))
    return {place: mark for place, mark in marks.items() if _is_within(place, within)}


def list_shared_roles(flow: Flow) -> set[str]:
    """Return the roles that play at several places, whose visits do not tell where they ran."""
    counts = Counter(
        role for node in flow.nodes.values() if node.kind == "agent" for role in node.roles
    )
    return {role for role, count in counts.items() if count > 1}


def mark_split(place: str, ended: int, branches: Sequence[Mapping[str, Mark]]) -> dict[str, Mark]:
    """Return the marks of a thread split at *place*; *ended* branches completed or killed."""
    found: dict[str, list[Mark]] = {}
    for marks in branches:
        for inner, mark in marks.items():
            found.setdefault(inner, []).append(mark)
    told = f"{ended} of {len(branches)}"
    here = Mark("now", f"▶ {told} ended", f"has split, and {told} branches have ended")
    return {inner: merge_marks(marks) for inner, marks in found.items()} | {place: here}


def _is_within(place: str, within: str | None) -> bool:
    return within is None or place == within or place.startswith(f"{within}/")


def _mark_passes(flow: Flow, position: Position) -> dict[str, Mark]:
    marks = {}
    around = position.up
    for part in reversed(position.parts[:-1]):
        if around is None:
            break
        if part.turn is not None:
            word = "item" if flow.nodes[around.place].kind == "map" else "pass"
            number = part.turn + (word == "item")
            marks[around.place] = Mark(
                "now", f"▶ {word} {number}", f"the thread is in {word} {number}"
            )
        around = around.up
    return marks


def _mark_here(progress: Progress, done: Mark | None) -> Mark:
    state, badge, words = _stand(progress)
    if done is None:
        return Mark(state, badge, words)
    return Mark(state, f"{badge} · {done.badge}", f"{words}; it {done.words}")


def _stand(progress: Progress) -> tuple[MarkState, str, str]:
    tries = progress.attempts
    if progress.tried and progress.status == "ready":
        doing = "is at work" if progress.is_at_work else "is next"
        return "now", f"▶ {progress.tried}", f"{doing}: {progress.tried}"
    failed = f" after {_tries(tries)}" if tries else ""
    if progress.is_at_work:
        told = f"▶ try {tries + 1}" if tries else "▶ at work"
        return "now", told, f"is at work{failed}"
    if progress.status == "ready":
        if tries:
            return "failed", f"▶ try {tries + 1}", f"is next{failed}"
        return "now", "▶ next", "is next"
    state, badge, words = _STANDS[progress.status]
    if progress.waits_for_limit and progress.status == "waiting":
        badge, words = "? limit", "waits until a limit ends"
    if progress.status == "failed" and tries:
        badge = f"✗ {_tries(tries)}"
    return state, badge, words + failed


def _tries(number: int) -> str:
    return "1 try" if number == 1 else f"{number} tries"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
