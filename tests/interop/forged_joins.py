"""Forged joins: what is changed, and in threads of which workflows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from commands.forging import run_by, says
from dulwich.objects import ObjectID
from interop.forger import Change, Forger, claims, dated, follows
from interop.forger_words import (
    ALL,
    WIDE,
    Changes,
    Edit,
    Rows,
    edits,
    inner,
    now,
    of_join,
    other_branch,
    parents,
    second,
    set_state,
)


def _one_file_more(f: Forger) -> Change:
    def change(commit: Any) -> None:
        files = f.files(f.join)
        mine = f.files_of(commit)
        mine["nodes/0/0/00000000000.json"] = next(iter(files.values()))
        f.holds(commit, mine)

    return change


def _without_a_node(f: Forger) -> Change:
    """Leave out the newest step of a branch."""

    def change(commit: Any) -> None:
        mine = f.files_of(commit)
        name = f.trailer(f.ends[-1], "Node")
        f.holds(commit, {path: file for path, file in mine.items() if name[2:] not in path})

    return change


def _from_join(f: Forger) -> list[ObjectID]:
    chain = f.chain(f.tip(f.told.thread))
    return chain[chain.index(f.join) :]


def _of_result(edit: Callable[[Forger, Any], Any]) -> Callable[[Forger], Changes]:
    return edits(lambda f: f.trailer(f.join, "Node"), edit, _from_join)


def _of_text(edit: Callable[[Forger, str], str]) -> Callable[[Forger], Changes]:
    def find(f: Forger) -> str:
        return str(f.nodes(f.join)[f.trailer(f.join, "Node")].payload["content"]["$ref"])

    return edits(find, edit, _from_join)


_PARENTS: Mapping[str, tuple[Sequence[str], Edit]] = {
    "join: parents swapped": (WIDE, lambda _f, p: [p[0], *p[:0:-1]]),
    "join: first branch dropped": (ALL, lambda _f, p: [p[0], *p[2:]]),
    "join: last branch dropped": (WIDE, lambda _f, p: p[:-1]),
    "join: no branch": (WIDE, lambda _f, p: p[:1]),
    "join: a branch doubled": (ALL, lambda _f, p: [*p, p[1]]),
    "join: a branch for its sister": (WIDE, lambda _f, p: [p[0], p[1], p[1], *p[3:]]),
    "join: branch of another thread": (ALL, lambda f, p: [p[0], other_branch(f), *p[2:]]),
    "join: and one of another thread": (ALL, lambda f, p: [*p, other_branch(f)]),
    "join: all of another thread": (ALL, lambda f, p: [p[0], *f.parents(f.twin)[1:]]),
    "join: of another thread's split": (ALL, lambda f, p: [f.parents(f.twin)[0], *p[1:]]),
    "join: without a split": (ALL, lambda f, p: [f.parents(p[0])[0], *p[1:]]),
    "join: a branch before its end": (ALL, lambda f, p: [p[0], f.parents(p[1])[0], *p[2:]]),
    "join: a branch at its start": (ALL, lambda f, p: [p[0], f.chain(p[1])[0], *p[2:]]),
    "join: the thread as its own branch": (ALL, lambda _f, p: [*p, p[0]]),
}
"""Whom the first join follows."""

JOINS: Rows = {
    **{name: (flows, of_join(parents(edit))) for name, (flows, edit) in _PARENTS.items()},
    "join: state": (ALL, of_join(now(set_state))),
    "join: state lost": (ALL[:7], of_join(now(lambda _f, now: now.pop("state", None)))),
    "join: usage": (ALL, of_join(now(lambda _f, now: now.update(usage={"tokens": 1})))),
    "join: visits": (ALL, of_join(now(lambda _f, now: now.pop("visits")))),
    "join: steps": (ALL, of_join(now(lambda _f, now: now.update(depth=now["depth"] + 1)))),
    "join: time": (ALL, of_join(now(lambda _f, now: now.update(executionTime=1)))),
    "join: another place": (ALL, of_join(lambda _f: claims(At="0/7"))),
    "join: another count": (ALL, of_join(lambda _f: says("completed", "completed, 9 killed"))),
    "join: a body": (ALL, of_join(lambda _f: says("\n\nUwf-", "\n\n    Approved.\n\nUwf-"))),
    "join: later": (ALL, of_join(lambda _f: dated(1))),
    "join: earlier": (ALL, of_join(lambda _f: dated(-1))),
    "join: by somebody": (ALL, of_join(lambda _f: run_by(b"somebody <somebody@example.com>"))),
    "join: paused": (ALL, of_join(lambda _f: claims(Status="paused"))),
    "join: still split": (ALL, of_join(lambda _f: claims(Status="split"))),
    "join: as a step": (ALL, of_join(lambda _f: claims(Event="step"))),
    "join: as a patch": (ALL, of_join(lambda _f: claims(Event="patch"))),
    "join: a file more": (ALL, of_join(_one_file_more)),
    "join: a node lost": (ALL, of_join(_without_a_node)),
    "join: result": (ALL, _of_result(lambda _f, old: {"meta": {**old["meta"], "ok": True}})),
    "join: role": (ALL, _of_result(lambda _f, _old: {"role": "closer"})),
    "join: heads": (ALL, _of_result(lambda _f, old: {"branches": [old["prev"]]})),
    "join: said": (ALL, _of_text(lambda _f, old: old + "approved\n")),
    "join: work of another ref": (
        ("isolated",),
        _of_text(lambda f, old: old.replace(f.told.branches[0], f.told.branches[1])),
    ),
    "join: left out": (ALL, lambda f: {f.after(f.join): follows(lambda p: f.parents(p[0])[:1])}),
    "join: twice": (
        ALL,
        lambda f: {
            f.after(f.join): follows(lambda p: [f.makes(p[0], follows(lambda q: [p[0], *q[1:]]))])
        },
    ),
    "join: again in the next pass": (
        ("loop",),
        lambda f: {second(f, "join"): follows(lambda p: [p[0], *f.ends])},
    ),
    "join: a branch's own branch": (
        ("nested",),
        of_join(parents(lambda f, p: [p[0], f.parents(inner(f, "join"))[1], *p[2:]])),
    ),
    "join: within a branch swapped": (
        ("nested",),
        lambda f: {inner(f, "join"): follows(lambda p: [p[0], *p[:0:-1]])},
    ),
    "join: within a branch of its aunt": (
        ("nested",),
        lambda f: {inner(f, "join"): follows(lambda p: [*p[:-1], f.ends[1]])},
    ),
}
