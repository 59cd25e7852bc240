"""`uwf thread rm`."""

import sys
from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import write_stderr
from uwf_git.commands.lifecycle.remove import Removal, Removed, plan_removals, remove_thread
from uwf_git.commands.worktree.worktrees import ForgottenWork
from uwf_git.errors import BadUsage, Refused
from uwf_git.model.event_words import count_steps
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store


def _cannot_confirm(threads: list[ThreadId]) -> BadUsage:
    return BadUsage(
        f"there is no terminal to confirm the removal of {_count(len(threads))}",
        code="nobody-to-confirm",
        hint="say so: --yes",
        threads=threads,
    )


@verb(
    "uwf thread rm 01J7K9M2",
    "uwf thread rm 01J7K9M2 01J7KB4Q --yes",
    exits={1: "a thread is active or unknown, or the user did not confirm", 4: "it is being used"},
)
@click.argument("threads", nargs=-1, required=True, metavar="THREAD...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def command(session: Session, threads: tuple[str, ...], yes: bool) -> None:  # noqa: FBT001 (click's way)
    """Remove archived threads from this store, and their branches.

    At a terminal it asks first; without one it needs --yes. Removed are the thread's refs here, its
    remote-tracking refs, and its files on this machine; of a branch with `isolation: worktree` also
    refs/uwf/work/ID and refs/uwf/inner/ID/ in the repository where it worked (`git update-ref` with
    the refs and commits in the result brings them back). The history that forks share stays. So do
    the commits, until `uwf gc` prunes them (until then the commit in the result restores the
    thread: `git update-ref refs/archive/ID COMMIT`), and the thread at remotes: the next fetch
    brings it back unless it is removed there as well.
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
        # Print what was removed, even if another removal failed.
        if rows:
            emit(session, rows)


def _ask(session: Session, removals: list[Removal]) -> None:
    if not (session.stdin_is_tty and session.stderr_is_tty):
        raise _cannot_confirm([removal.thread for removal in removals])
    planned = {removal.thread for removal in removals}
    for removal in removals:
        if removal.parent not in planned:
            steps = "" if removal.depth is None else f", {count_steps(removal.depth)}"
            note(f"{removal.thread}  {removal.workflow_name or '-'}, {removal.status}{steps}")
    branches = [removal for removal in removals if removal.parent in planned]
    if branches:
        note(f"and {_count_branches(len(branches))}")
    apart = sum(removal.works_apart for removal in removals)
    if apart:
        note(f"and what {_count_branches(apart)} left at refs/uwf/work/ in your repository")
    write_stderr(f"Remove {_count(len(removals))} for good? [y/N] ")
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("nothing was removed", code="not-confirmed")


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
        **({} if removal.parent is None else {"parentThread": removal.parent}),
        **({} if removed.work is None else {"work": _view_work(removed.work)}),
    }


def _view_work(work: ForgottenWork) -> dict[str, Any]:
    document = work._asdict()
    inner = [each._asdict() for each in document.pop("inner")]
    return {**document, **({"inner": inner} if inner else {})}


def _note_remotes(removed: Removed) -> None:
    if removed.remotes:
        have = "has" if len(removed.remotes) == 1 else "have"
        note(
            f"note: {', '.join(removed.remotes)} still {have} {removed.removal.thread}; the next "
            "fetch brings it back"
        )


def _count(threads: int) -> str:
    return "this thread" if threads == 1 else f"these {threads} threads"


def _count_branches(branches: int) -> str:
    return "1 branch" if branches == 1 else f"{branches} branches"
