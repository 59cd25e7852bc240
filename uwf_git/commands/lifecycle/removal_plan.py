"""Which threads `uwf thread rm` removes: the named ones and their branches, all of them archived.

A thread that names another one as its parent is its branch; a list in a parent alone proves
nothing. Branches come before their parents, so a removal that was cut short can be repeated.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from uwf_git.commands.inspect.standing import DAMAGED
from uwf_git.commands.remote.descendants import with_branches
from uwf_git.commands.worktree.record import find_worktree
from uwf_git.errors import Refused, StoreDamaged, name_some
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, Head, find_head, get_head, resolve_thread
from uwf_git.store.threads.snapshot import read_snapshot

_SHOWN = 3


def _thread_still_active(thread: ThreadId, *, is_damaged: bool) -> Refused:
    damaged = ", damaged" if is_damaged else ""
    ref = ACTIVE + thread
    return Refused(
        f"thread {thread} is active{damaged}, and only archived threads can be removed",
        # A damaged thread cannot be killed.
        hint=f"`git update-ref -d {ref}` in the store gives it up as it is"
        if is_damaged
        else f"end it first: `uwf thread kill {thread} -m …`",
        thread=thread,
        code="thread-still-active",
    )


class Removal(NamedTuple):
    """An archived thread to remove."""

    thread: ThreadId
    commit: Oid
    """Its last commit."""

    status: str
    """Its status; `damaged` if that cannot be read."""

    workflow_name: str | None = None
    depth: int | None = None
    parent: ThreadId | None = None
    """Of a branch: the thread that it belongs to."""

    works_apart: bool = False
    """It is a branch that had a worktree of its own here."""


def plan_removals(store: Store, texts: Iterable[str]) -> list[Removal]:
    """Return the threads that *texts* name and their branches, each once; nothing is removed yet.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: a text matches no thread, or several.
        Refused: one has not ended.
        Refused: one is a branch that is still to be joined.
    """
    named = dict.fromkeys(resolve_thread(store, text) for text in texts)
    planned: dict[ThreadId, Removal] = {}
    for thread in named:
        root = _plan(store, get_archived(store, thread))
        _check_not_needed(store, root)
        # Branches first.
        for removal in [*reversed(list(_plan_branches(store, root))), root]:
            planned.setdefault(removal.thread, removal)
    return list(planned.values())


def get_archived(store: Store, thread: ThreadId) -> Head:
    """Return the head of a thread that has ended.

    Raises:
        NoSuchThread: there is none.
        Refused: it has not ended.
    """
    head = get_head(store, thread)
    if not head.archived:
        raise _thread_still_active(thread, is_damaged=_plan(store, head).status == DAMAGED)
    return head


def _plan(store: Store, head: Head) -> Removal:
    try:
        snapshot = read_snapshot(store, head.commit)
        record, parent = snapshot.record, snapshot.get_trunk()
    except StoreDamaged:
        # A damaged thread can be removed as well.
        return Removal(head.thread, head.commit, DAMAGED)
    apart = parent is not None and find_worktree(store, parent, head.thread) is not None
    told = (record.status, record.workflow_name, record.depth, parent, apart)
    return Removal(head.thread, head.commit, *told)


def _plan_branches(store: Store, root: Removal) -> Iterator[Removal]:
    """Yield the branches below *root* that are here, parents first."""
    family, active = {root.thread}, []
    for thread in with_branches(store, [root.thread])[1:]:
        head = find_head(store, thread)
        if head is None:
            continue
        removal = _plan(store, head)
        if removal.parent not in family:
            continue
        family.add(thread)
        if head.archived:
            yield removal
        else:
            active.append(thread)
    if active:
        count = "1 branch" if len(active) == 1 else f"{len(active)} branches"
        raise Refused(
            f"{count} of thread {root.thread} must end first: {name_some(active, most=_SHOWN)}",
            code="branches-still-active",
            hint=f"`uwf thread kill {active[0]} -m …` ends one; a step of it ends all that a "
            "kill of the thread left",
            thread=root.thread,
            branches=list(active),
        )


def _check_not_needed(store: Store, removal: Removal) -> None:
    """Check that no thread waits for the end of the thread to join it."""
    parent = None if removal.parent is None else find_head(store, removal.parent)
    if parent is None or parent.archived:
        return
    try:
        split = read_snapshot(store, parent.commit).get_present().split
    except StoreDamaged:
        # It can join nothing.
        return
    if split is not None and removal.thread in {child.thread for child in split.children}:
        raise Refused(
            f"thread {removal.thread} is a branch that thread {parent.thread} has not joined yet",
            code="branch-not-joined",
            hint=f"`uwf thread run {parent.thread}` goes on and joins it; `uwf thread kill "
            f"{parent.thread} -m …` "
            "ends that thread, and `uwf thread rm` of it takes its branches along",
            thread=removal.thread,
            parent=parent.thread,
        )
