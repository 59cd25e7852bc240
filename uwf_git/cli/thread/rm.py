"""`uwf thread rm`."""

import sys
from typing import Any

import click

from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.calling import caller_of
from uwf_git.cli.render import emit, note
from uwf_git.cli.settings import Session
from uwf_git.cli.streams import write_stderr
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_rm import Removal, Removed, plan_removals, remove_thread
from uwf_git.engine.subject import count_steps
from uwf_git.errors import BadUsage, Refused
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.store import Store


class NobodyToConfirm(BadUsage):
    """There is no terminal at which somebody could say yes."""

    code = "nobody-to-confirm"

    def __init__(self, threads: list[ThreadId]) -> None:
        super().__init__(
            f"there is no terminal to ask at whether {_count(len(threads))} shall be removed",
            hint="say so: --yes",
            threads=threads,
        )


class NotConfirmed(Refused):
    """Somebody was asked, and did not say yes."""

    code = "not-confirmed"

    def __init__(self) -> None:
        super().__init__("nothing was removed")


@verb(
    "uwf thread rm 01J7K9M2",
    "uwf thread rm 01J7K9M2 01J7KB4Q --yes",
    exits={1: "a thread is active, or there is none, or nobody said yes", 4: "it is being used"},
)
@click.argument("threads", nargs=-1, required=True, metavar="THREAD...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def command(session: Session, threads: tuple[str, ...], yes: bool) -> None:  # noqa: FBT001 (click's way)
    """Remove archived threads from this store.

    At a terminal it asks first; without one it needs --yes. What goes: the thread's refs here,
    what was last seen of it at remotes, and its files on this machine. What stays: the history
    that forks share; the commits themselves, until `uwf gc` finds that nothing needs them (the
    commit in the result brings it back until then: `git update-ref refs/archive/ID COMMIT`); and
    whatever a remote has, so that the next fetch brings the thread back, unless it is removed
    there as well.
    """
    store = session.open_store()
    removals = plan_removals(store, threads)
    if not yes:
        _ask(session, removals)
    rows: list[dict[str, Any]] = []
    try:
        for removal in removals:
            row = _remove(session, store, removal)
            rows.append(row)
    finally:
        # What is gone is told, also if another one would not go.
        if rows:
            emit(session, rows)
    pack_when_due(session, store)


def _ask(session: Session, removals: list[Removal]) -> None:
    if not (session.stdin_is_tty and session.stderr_is_tty):
        raise NobodyToConfirm([removal.thread for removal in removals])
    for removal in removals:
        steps = "" if removal.depth is None else f", {count_steps(removal.depth)}"
        note(f"{removal.thread}  {removal.workflow_name or '-'}, {removal.status}{steps}")
    write_stderr(f"Remove {_count(len(removals))} for good? [y/N] ")
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise NotConfirmed


def _remove(session: Session, store: Store, removal: Removal) -> dict[str, Any]:
    removed = remove_thread(store, caller_of(session), removal)
    _note_remotes(removed)
    return {
        "thread": removal.thread,
        "workflowName": removal.workflow_name,
        "status": removal.status,
        "depth": removal.depth,
        "commit": removal.commit,
        "remotes": removed.remotes,
    }


def _note_remotes(removed: Removed) -> None:
    if removed.remotes:
        have = "has" if len(removed.remotes) == 1 else "have"
        note(
            f"note: {', '.join(removed.remotes)} still {have} {removed.removal.thread}; the next "
            "fetch brings it back"
        )


def _count(threads: int) -> str:
    return "this thread" if threads == 1 else f"these {threads} threads"
