"""Forged joins: what is changed, and in threads of which workflows."""

from typing import Any

from dulwich.objects import ObjectID
from interop.forger import Change, Forger, claims, dated, follows, says
from interop.forger_words import (
    ALL,
    WIDE,
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


def _by_somebody(_f: Forger) -> Change:
    def change(commit: Any) -> None:
        commit.committer = b"somebody <somebody@example.com>"

    return change


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


def _joined(f: Forger) -> str:
    return f.trailer(f.join, "Node")


def _joined_text(f: Forger) -> str:
    return str(f.nodes(f.join)[_joined(f)].payload["content"]["$ref"])


JOINS: Rows = {
    "join: parents swapped": (WIDE, of_join(parents(lambda _f, p: [p[0], *p[:0:-1]]))),
    "join: first branch dropped": (ALL, of_join(parents(lambda _f, p: [p[0], *p[2:]]))),
    "join: last branch dropped": (WIDE, of_join(parents(lambda _f, p: p[:-1]))),
    "join: no branch": (WIDE, of_join(parents(lambda _f, p: p[:1]))),
    "join: a branch doubled": (ALL, of_join(parents(lambda _f, p: [*p, p[1]]))),
    "join: a branch for its sister": (
        WIDE,
        of_join(parents(lambda _f, p: [p[0], p[1], p[1], *p[3:]])),
    ),
    "join: branch of another thread": (
        ALL,
        of_join(parents(lambda f, p: [p[0], other_branch(f), *p[2:]])),
    ),
    "join: and one of another thread": (
        ALL,
        of_join(parents(lambda f, p: [*p, other_branch(f)])),
    ),
    "join: all of another thread": (
        ALL,
        of_join(parents(lambda f, p: [p[0], *f.parents(f.twin)[1:]])),
    ),
    "join: of another thread's split": (
        ALL,
        of_join(parents(lambda f, p: [f.parents(f.twin)[0], *p[1:]])),
    ),
    "join: without a split": (
        ALL,
        of_join(parents(lambda f, p: [f.parents(p[0])[0], *p[1:]])),
    ),
    "join: a branch before its end": (
        ALL,
        of_join(parents(lambda f, p: [p[0], f.parents(p[1])[0], *p[2:]])),
    ),
    "join: a branch at its start": (
        ALL,
        of_join(parents(lambda f, p: [p[0], f.chain(p[1])[0], *p[2:]])),
    ),
    "join: the thread as its own branch": (ALL, of_join(parents(lambda _f, p: [*p, p[0]]))),
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
    "join: by somebody": (ALL, of_join(_by_somebody)),
    "join: paused": (ALL, of_join(lambda _f: claims(Status="paused"))),
    "join: still split": (ALL, of_join(lambda _f: claims(Status="split"))),
    "join: as a step": (ALL, of_join(lambda _f: claims(Event="step"))),
    "join: as a patch": (ALL, of_join(lambda _f: claims(Event="patch"))),
    "join: a file more": (ALL, of_join(_one_file_more)),
    "join: a node lost": (ALL, of_join(_without_a_node)),
    "join: result": (
        ALL,
        edits(_joined, lambda _f, old: {"meta": {**old["meta"], "ok": True}}, _from_join),
    ),
    "join: role": (ALL, edits(_joined, lambda _f, _old: {"role": "closer"}, _from_join)),
    "join: heads": (
        ALL,
        edits(_joined, lambda _f, old: {"branches": [old["prev"]]}, _from_join),
    ),
    "join: said": (ALL, edits(_joined_text, lambda _f, old: old + "approved\n", _from_join)),
    "join: work of another ref": (
        ("isolated",),
        edits(
            _joined_text,
            lambda f, old: old.replace(f.told.branches[0], f.told.branches[1]),
            _from_join,
        ),
    ),
    "join: left out": (
        ALL,
        lambda f: {f.after(f.join): follows(lambda p: [f.get(p[0]).parents[0]])},
    ),
    "join: twice": (
        ALL,
        lambda f: {
            f.after(f.join): follows(
                lambda p: [f.makes(p[0], follows(lambda q: [p[0], *q[1:]]))],
            )
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
