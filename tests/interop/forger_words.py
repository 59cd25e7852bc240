"""What the rows of forgeries are made of: whom they concern, and what they change."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dulwich.objects import ObjectID
from interop.forger import Change, Forger, follows
from interop.honest_flows import SOURCES

Changes = Mapping[ObjectID, Change]
Edit = Callable[[Forger, list[ObjectID]], list[ObjectID]]
ALL = tuple(SOURCES)
WIDE = tuple(name for name in ALL if name not in {"workflow", "graph"})
KILLED = ("any", "continue")
Rows = Mapping[str, tuple[Sequence[str], Callable[[Forger], Changes]]]


def of_join(change: Callable[[Forger], Change]) -> Callable[[Forger], Changes]:
    """Change the first join."""
    return lambda f: {f.join: change(f)}


def parents(edit: Edit) -> Callable[[Forger], Change]:
    """Change the parents of a commit."""
    return lambda f: follows(lambda parents: edit(f, parents))


def now(edit: Callable[[Forger, dict[str, Any]], object]) -> Callable[[Forger], Change]:
    """Change the state of the thread in a commit."""

    def change(f: Forger) -> Change:
        return f.now(lambda now: edit(f, now))

    return change


def set_state(_f: Forger, now: dict[str, Any]) -> None:
    """Approve."""
    now.setdefault("state", {})["approved"] = True


def edits(
    find: Callable[[Forger], str],
    edit: Callable[[Forger, Any], Any],
    where: Callable[[Forger], Sequence[ObjectID]],
) -> Callable[[Forger], Changes]:
    """Edit a node, and consistently all that names it, in some commits."""

    def changes(f: Forger) -> Changes:
        name = find(f)
        tip = f.tip(f.told.thread)
        change = f.replaces(f.edited(tip, {name: edit(f, f.nodes(tip)[name].payload)}))
        return dict.fromkeys(where(f), change)

    return changes


def other_branch(f: Forger) -> ObjectID:
    """Return the end of the twin's first branch."""
    return f.parents(f.twin)[1]


def second(f: Forger, event: str) -> ObjectID:
    """Return the second split or join of the thread."""
    return [oid for oid in f.chain(f.tip(f.told.thread)) if f.event(oid) == event][1]


def last_join(f: Forger) -> ObjectID:
    """Return its last join."""
    return [oid for oid in f.chain(f.tip(f.told.thread)) if f.event(oid) == "join"][-1]


def inner(f: Forger, event: str) -> ObjectID:
    """Return the first split or join within the first branch."""
    return next(oid for oid in f.branch(0) if f.event(oid) == event)
