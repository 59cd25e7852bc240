"""`uwf thread graph`: what the picture of a thread shows."""

from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from uwf_git.commands.inspect.all_steps import find_given_up, tell_given_up
from uwf_git.commands.inspect.list import count_branches, view_urgent
from uwf_git.commands.inspect.show import Moment, ShownThread, read_moment, view_thread
from uwf_git.commands.split.commits import read_entry
from uwf_git.commands.turn.limits import add_branches
from uwf_git.commands.workflow.graph import view_moves
from uwf_git.engine.picture.marks import (
    Progress,
    list_shared_roles,
    mark_places,
    mark_roles,
    mark_split,
)
from uwf_git.engine.picture.plan import MOST_ALIKE, Mark, Subject, ThreadMarks
from uwf_git.errors import StoreDamaged, UwfError
from uwf_git.model.event_rules import STEPS
from uwf_git.model.event_words import count_steps
from uwf_git.model.flow import Flow, NotAPosition, Position, parse_position
from uwf_git.model.thread import ENDED, Split
from uwf_git.model.workflow import END, START, Graph, parse_workflow
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

# How many steps each place of a flow took, from the commits of its thread.


class StepsAt(NamedTuple):
    commits: frozenset[Oid] = frozenset()

    positions: frozenset[str] = frozenset()
    """Where in the flow the steps were taken; each has a position of its own."""

    by_place: Mapping[str, int] = MappingProxyType({})
    """How many steps each place of the flow took."""

    given_up: Mapping[str, str] = MappingProxyType({})
    """Place where a branch began that the newest join there goes on without → its error."""


_NOTHING = StepsAt()


def find_steps_at(store: Store, tip: Oid, *, most: int, before: StepsAt = _NOTHING) -> StepsAt:
    """Find the steps of the thread at *tip*, with the steps of joined branches.

    That costs a look at each commit except *before*, which has the steps of a branch's thread. If
    there are more than *most*, no step is returned. Steps before damage, steps that were redone,
    and steps of other workflows are left out.
    """
    seen, positions, by_place = set(before.commits), set(before.positions), Counter(before.by_place)
    given_up: dict[str, dict[str, str]] = {}
    pending = [tip]
    while pending:
        with suppress(StoreDamaged):
            for snapshot in _walk(store, pending.pop(), seen, most):
                if snapshot.record.event == "join":
                    joined = (read_snapshot(store, oid) for oid in snapshot.commit.parents[1:])
                    pending += [each.commit.oid for each in joined if _is_within_flow(each)]
                    for place in _list_places(snapshot.record.at or ""):
                        if place not in given_up:
                            given_up[place] = _find_given_up(snapshot)
                elif (at := snapshot.record.at) is not None and at not in positions:
                    positions.add(at)
                    by_place.update(_list_places(at))
    told = by_place if len(seen) <= most else Counter[str]()
    ends = ChainMap(*given_up.values()) if len(seen) <= most else {}
    return StepsAt(frozenset(seen), frozenset(positions), told, ends)


def _find_given_up(join: Snapshot) -> dict[str, str]:
    entries = [(read_entry(tip), tip) for tip in find_given_up(join).values()]
    return {entry.place: tell_given_up(tip) for entry, tip in entries if entry is not None}


def _walk(store: Store, tip: Oid, seen: set[Oid], most: int) -> Iterator[Snapshot]:
    """Yield joins, and steps that count, from *tip* back to where its flow began.

    Each commit is added to *seen*, until these are more than *most*.
    """
    redone = 0
    oid: Oid | None = tip
    while oid is not None and oid not in seen and len(seen) <= most:
        seen.add(oid)
        snapshot = read_snapshot(store, oid)
        event = snapshot.record.event
        if event == "poke":
            redone += 1
        elif event in STEPS and redone:
            redone -= 1
        elif event in STEPS:
            yield snapshot
        goes_on = event != "start" or _is_within_flow(snapshot)
        oid = next(iter(snapshot.commit.parents), None) if goes_on else None


def _is_within_flow(snapshot: Snapshot) -> bool:
    """Check whether a thread is a branch that runs a part of its parent's flow."""
    return "entry" in snapshot.get_start().payload


def _list_places(at: str) -> list[str]:
    """Return the place of a position in a list; [] for any other text."""
    try:
        return [parse_position(at).place]
    except NotAPosition:
        return []


# Of longer threads a role's steps are not counted by place.
_MOST_COMMITS = 1_000


def picture_thread(store: Store, text: str) -> Subject:
    """Return what the picture of a thread shows; branches that cannot be read are left out."""
    shown = view_thread(store, text, with_family=False)
    document, snapshot = shown.document, shown.snapshot
    status = document["status"]
    urgent = view_urgent(status, count_branches(store, snapshot)).get("branchStatus", status)
    steps = count_steps(add_branches(store, snapshot, snapshot.get_present()).depth)
    headline = f"thread {document['thread']}, {urgent}, {steps}"
    workflow = parse_workflow(snapshot.get_node(snapshot.get_present().workflow))
    return view_moves(
        workflow,
        snapshot.get_node,
        lambda moves: ThreadMarks(headline, _mark(store, shown, moves)),
    )


def read_progress(shown: ShownThread) -> Progress:
    document, move = shown.document, shown.move
    running = document.get("running") or {}
    return Progress(
        status=shown.snapshot.record.status,
        visits=document["visits"],
        turn=END if move.role == END else document["currentNode"],
        attempts=document["attempts"],
        is_at_work=running.get("role") is not None,
        waits_for_limit="until" in (document.get("waiting") or {}),
        last=document["lastNode"] or START,
        tried=_tell_try(shown),
    )


def _tell_try(shown: ShownThread) -> str:
    """Return which try a thread is at, and whose turn it is; "" until the first work is done."""
    view = shown.document.get("try")
    if view is None or shown.snapshot.get_present().tried is None:
        return ""
    of = f" of {view['of']}" if "of" in view else ""
    return f"try {view['number']}{of}, {view['turn']}"


def _mark(
    store: Store, shown: ShownThread, moves: Graph | Flow, before: StepsAt = _NOTHING
) -> dict[str, Mark]:
    """Return the marks of a thread; for a branch *before* has the steps of its thread."""
    progress, split = read_progress(shown), shown.snapshot.get_present().split
    if not isinstance(moves, Flow):
        marks = mark_roles(progress)
        return marks if split is None else marks | _mark_branches(store, shown, split, None)
    steps = before
    may_give_up = any(node.fields.get("onError") == "continue" for node in moves.nodes.values())
    if may_give_up or list_shared_roles(moves):
        tip = shown.snapshot.commit.oid
        steps = find_steps_at(store, tip, most=_MOST_COMMITS, before=before)
        progress = progress._replace(steps_at=steps.by_place, given_up=steps.given_up)
    entry = read_entry(shown.snapshot)
    within = None if entry is None else entry.place
    marks = mark_places(moves, progress, _find_position(shown, progress), within=within)
    return marks if split is None else marks | _mark_branches(store, shown, split, moves, steps)


def _find_position(shown: ShownThread, progress: Progress) -> Position | None:
    """Return where the thread stands in its flow; None if that is unknown, or it is at its end."""
    present = shown.snapshot.get_present()
    at = shown.move.at or present.trying
    if at is None and progress.status != "ready":
        at = present.at
    try:
        return None if at is None else parse_position(at)
    except NotAPosition:
        return None


def _mark_branches(
    store: Store,
    shown: ShownThread,
    split: Split,
    flow: Flow | None,
    steps: StepsAt = _NOTHING,
) -> dict[str, Mark]:
    """Return the marks of a thread's branches, except branches with a workflow of their own."""
    own = shown.snapshot.record.workflow
    is_many = len(split.children) > MOST_ALIKE
    branches: list[dict[str, Mark]] = []
    ended = 0
    for child in split.children:
        marks: dict[str, Mark] = {}
        with suppress(UwfError, NotAPosition):
            moment = read_moment(store, child.thread)
            record = moment.snapshot.record
            ended += record.status in ENDED
            if flow is not None and record.workflow == own:
                if is_many:
                    marks = _mark_moment(moment, flow)
                else:
                    branch = view_thread(store, child.thread, with_family=False)
                    marks = _mark(store, branch, flow, steps)
        branches.append(marks)
    place = split.at if flow is None else parse_position(split.at).place
    return mark_split(place, ended, branches)


def _mark_moment(moment: Moment, flow: Flow) -> dict[str, Mark]:
    """Return the marks of one of many branches, from its newest commit alone."""
    present = moment.snapshot.get_present()
    entry = read_entry(moment.snapshot)
    status = moment.snapshot.record.status
    at = present.trying or present.at
    if at is None:
        position = entry
    elif present.trying is None and status == "ready":
        # Which place is next after a step is not decided for many.
        position = None
    else:
        position = parse_position(at)
    progress = Progress(
        status=status,
        visits=present.visits,
        attempts=present.attempts,
        is_at_work=moment.running is not None,
        # Of a branch that is one agent; in others a role may play at several places.
        steps_at={} if entry is None else {entry.place: sum(present.visits.values())},
    )
    return mark_places(flow, progress, position, within=None if entry is None else entry.place)
