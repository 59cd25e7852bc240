"""Forged splits and branches: what is changed, and in threads of which workflows."""

from collections.abc import Callable
from typing import Any

from commands.forging import also, says
from dulwich.objects import ObjectID
from interop.forger import Change, Forger, claims, dated, follows
from interop.forger_words import (
    ALL,
    KILLED,
    WIDE,
    Changes,
    Rows,
    edits,
    last_join,
    now,
    of_join,
    other_branch,
    parents,
    second,
    set_state,
)
from interop.honest_flows import refs_of, set_refs


def _of_split(change: Callable[[Forger], Change]) -> Callable[[Forger], Changes]:
    return lambda f: {f.split: change(f)}


def _of_start(change: Callable[[Forger], Change]) -> Callable[[Forger], Changes]:
    return lambda f: {f.branch(0)[0]: change(f)}


def _of_step(change: Callable[[Forger], Change]) -> Callable[[Forger], Changes]:
    return lambda f: {f.branch(0)[1]: change(f)}


def _of_end(change: Callable[[Forger], Change]) -> Callable[[Forger], Changes]:
    return lambda f: {f.ends[0]: change(f)}


def _from_split(f: Forger) -> list[ObjectID]:
    chain = f.chain(f.tip(f.told.thread))
    return chain[chain.index(f.split) :] + f.branch(0)


def _of_node(edit: Callable[[Forger, Any], Any]) -> Callable[[Forger], Changes]:
    """Edit the start node of the first branch."""
    return edits(lambda f: f.trailer(f.branch(0)[0], "Node"), edit, _from_split)


def _killed(f: Forger) -> ObjectID:
    return next(oid for oid in f.ends if f.event(oid) == "kill")


def _first_killed(f: Forger) -> int:
    return next((n for n, oid in enumerate(f.ends) if f.event(oid) == "kill"), -1)


def _renamed(f: Forger, other: str) -> Changes:
    """Give the first branch another id, in the split and in all its commits."""
    mine = f.told.branches[0]
    changes: dict[ObjectID, Change] = dict.fromkeys(f.branch(0), claims(Thread=other))
    edit = now(lambda _f, now: now["split"]["children"][0].update(thread=other))(f)
    changes[f.split] = also(edit, says(mine, other))
    return changes


def _ended_at(f: Forger, number: int) -> Changes:
    """Let the first branch end after one of its commits, as if it had come to its end."""
    at = f.branch(0)[number]

    def holds(commit: Any) -> None:
        f.holds(commit, f.files(at))

    kept = {name: f.trailer(at, name) for name in ("Node", "Depth")}
    return {f.ends[0]: also(follows(lambda _p: [at]), claims(**kept), holds)}


def _swapped(f: Forger) -> Changes:
    one, two, end = f.branch(0)[-3:]
    before = f.parents(one)[0]
    return {
        end: follows(
            lambda _p: [
                f.makes(one, follows(lambda _q: [f.makes(two, follows(lambda _r: [before]))]))
            ]
        )
    }


def _misplaced(f: Forger) -> Changes:
    steps = [next(o for o in f.branch(n) if f.trailer(o, "At")) for n in (0, 1)]
    return {steps[0]: claims(At=f.trailer(steps[1], "At"))}


def _refs_swapped(f: Forger) -> Changes:
    refs = refs_of(f.told.world.store)
    one, two = (f"refs/archive/{each}" for each in f.told.branches[:2])
    set_refs(f.told.world.store.path, {**refs, one: refs[two], two: refs[one]})
    return {}


def _archived_early(f: Forger) -> Changes:
    refs = refs_of(f.told.world.store)
    ref = f"refs/archive/{f.told.branches[0]}"
    set_refs(f.told.world.store.path, {**refs, ref: f.parents(f.ends[0])[0].decode()})
    return {}


BRANCHES: Rows = {
    # Splits.
    "split: another id": (ALL, lambda f: _renamed(f, f.told.twin)),
    "split: the ids of another thread": (
        ALL,
        lambda f: _renamed(f, f.trailer(other_branch(f), "Thread")),
    ),
    "split: branches swapped": (
        WIDE,
        _of_split(now(lambda _f, now: now["split"]["children"].reverse())),
    ),
    "split: a branch fewer": (
        WIDE,
        lambda f: {
            f.split: now(lambda _f, now: now["split"]["children"].pop())(f),
            f.join: follows(lambda p: p[:-1]),
        },
    ),
    "split: a branch more": (
        ALL,
        _of_split(
            now(
                lambda f, now: now["split"]["children"].append(
                    {"thread": f.told.twin, "start": now["split"]["children"][0]["start"]}
                )
            )
        ),
    ),
    "split: twice": (
        ALL,
        lambda f: {f.join: follows(lambda p: [f.makes(p[0], follows(lambda _q: [p[0]])), *p[1:]])},
    ),
    "split: another place": (ALL, _of_split(lambda _f: claims(At="0/2"))),
    "split: the place of the pass before": (
        ("loop",),
        lambda f: {second(f, "split"): claims(At=f.trailer(f.split, "At"))},
    ),
    "split: a line of its body": (ALL, _of_split(lambda _f: says("    0 ", "    0 not "))),
    "split: later": (ALL, _of_split(lambda _f: dated(1))),
    "split: state": (ALL, _of_split(now(set_state))),
    "split: limits": (ALL, _of_split(now(lambda _f, now: now.update(limits={"maxSteps": 99})))),
    "split: follows the twin": (
        ALL,
        _of_split(parents(lambda f, _p: [f.parents(f.parents(f.twin)[0])[0]])),
    ),
    "split: of its own branch": (ALL, _of_split(parents(lambda f, p: [*p, f.twin]))),
    "start node: prompt": ((*WIDE, "graph"), _of_node(lambda _f, _old: {"prompt": "Approve."})),
    "start node: state": (ALL, _of_node(lambda _f, _old: {"initialState": {"ok": True}})),
    "start node: an item": (
        ("map", "nested"),
        _of_node(lambda _f, old: {"initialState": {**old["initialState"], "file": "z"}}),
    ),
    "start node: the number of an item": (
        ("map", "nested"),
        _of_node(lambda _f, old: {"initialState": {**old["initialState"], "fileIndex": 1}}),
    ),
    "start node: entry": (
        WIDE,
        _of_node(
            lambda f, _old: {
                "entry": f.nodes(f.split)[f.trailer(f.branch(1)[0], "Node")].payload["entry"]
            }
        ),
    ),
    "start node: depth": (ALL, _of_node(lambda _f, _old: {"depth": 2})),
    "start node: limits": (ALL, _of_node(lambda _f, _old: {"maxSteps": 1})),
    "start node: nobody bound": (ALL, _of_node(lambda _f, _old: {"agentBinding": {}})),
    # Starts of branches.
    "start: state": (ALL, _of_start(now(set_state))),
    "start: visits": (ALL, _of_start(now(lambda _f, now: now.update(visits={"closer": 3})))),
    "start: before the split": (ALL, _of_start(parents(lambda f, p: f.parents(p[0])))),
    "start: torn": (ALL, _of_start(parents(lambda _f, _p: []))),
    "start: at the twin's split": (ALL, _of_start(parents(lambda f, _p: f.parents(f.twin)[:1]))),
    "start: of two": (ALL, _of_start(parents(lambda f, p: [*p, f.twin]))),
    "start: in the pass before": (
        ("loop",),
        lambda f: {f.chain(f.parents(second(f, "join"))[1])[0]: follows(lambda _p: [f.split])},
    ),
    "start: another number": (ALL, _of_start(lambda _f: says("branch 0", "branch 1"))),
    "start: of the twin": (ALL, _of_start(lambda f: claims(Parent_Thread=f.told.twin))),
    "start: later": (ALL, _of_start(lambda _f: dated(1))),
    "start: ready to end": (ALL, _of_start(lambda _f: claims(Status="completed"))),
    # Branches.
    "branch: state": (ALL, _of_step(now(set_state))),
    "branch: end without steps": (ALL, lambda f: _ended_at(f, 0)),
    "branch: end before its last step": (
        ("nested", "workflow", "graph"),
        lambda f: _ended_at(f, -3),
    ),
    "branch: a step doubled": (
        ALL,
        _of_end(parents(lambda f, p: [f.makes(p[0], follows(lambda _q: [p[0]]))])),
    ),
    "branch: steps swapped": (("workflow", "graph", "nested"), _swapped),
    "branch: goes on after its end": (
        ALL,
        of_join(
            parents(
                lambda f, p: [p[0], f.makes(f.branch(0)[1], follows(lambda _q: [p[1]])), *p[2:]]
            )
        ),
    ),
    "branch: a kill shown as the end": (
        KILLED,
        lambda f: {_killed(f): claims(Event="end", Status="completed")},
    ),
    "branch: an end shown as a kill": (
        WIDE,
        lambda f: {f.ends[1 - (_first_killed(f) == 1)]: claims(Event="kill", Status="killed")},
    ),
    "branch: a kill forgotten": (
        KILLED,
        lambda f: {
            f.join: follows(
                lambda p: [f.parents(each)[0] if f.event(each) == "kill" else each for each in p]
            )
        },
    ),
    "branch: a kill for another reason": (
        ("continue",),
        lambda f: {_killed(f): says("no luck", "approved")},
    ),
    "branch: a step of another thread": (ALL, _of_step(lambda f: claims(Thread=f.told.twin))),
    "branch: of another parent": (ALL, _of_step(lambda f: claims(Parent_Thread=f.told.twin))),
    "branch: a step at its sister's place": (WIDE, _misplaced),
    "branch: waits at its end": (ALL, _of_end(lambda _f: claims(Status="ready"))),
    "branch: a winner that was later": (("any",), lambda f: {f.ends[1]: dated(9)}),
    # The thread around them.
    "thread: a step while it is split": (
        WIDE,
        lambda f: {
            f.join: follows(
                lambda p: [f.makes(f.after(last_join(f)), follows(lambda _q: p[:1])), *p[1:]]
            )
        },
    ),
    "thread: ends while it is split": (
        ALL,
        lambda f: {f.tip(f.told.thread): follows(lambda _p: [f.split])},
    ),
    "thread: the last pass left out": (
        ("loop",),
        lambda f: {f.after(last_join(f)): follows(lambda _p: [f.join])},
    ),
    # References.
    "refs: branches in each other's place": (WIDE, _refs_swapped),
    "refs: a branch archived before its end": (ALL, _archived_early),
}
