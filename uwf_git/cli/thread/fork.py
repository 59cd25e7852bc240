"""`uwf thread fork`."""

from typing import Any

import click

from uwf_git.cli.app.follow_up import note_next
from uwf_git.cli.app.parameters import reason_option
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of
from uwf_git.cli.output.screen import confirm, emit, note, without_none
from uwf_git.cli.session import Session
from uwf_git.commands.control.files import fork_with_files
from uwf_git.commands.lifecycle.fork import ForkRequest, fork_thread
from uwf_git.commands.lifecycle.remove import Removal, Removed, plan_removals, remove_thread
from uwf_git.commands.turn.limits import read_spending
from uwf_git.commands.worktree.worktrees import ForgottenWork
from uwf_git.errors import BadUsage, Refused
from uwf_git.model.event_folds import count_steps
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import read_snapshot


@verb(
    "uwf thread fork 01J7K9M2 --at 3 -m 'another way after the review'",
    "uwf thread fork 01J7K9M2 --at 4f2a91c",
    "uwf thread fork 01J7K9M2 --from-role reviewer",
    "uwf thread fork 01J7K9M2 --at 3 --files --into ../second-try",
    exits={1: "there is no such thread or step"},
)
@click.argument("thread")
@click.option(
    "--at",
    metavar="STEP",
    help="Where: a step's number or hash, or a commit.  [default: where the thread is now]",
)
@click.option(
    "--from-role",
    metavar="ROLE",
    help="Before the newest step of this role, so that it is next again.",
)
@reason_option
@click.option(
    "--workdir",
    metavar="PATH",
    help="Where its agents run.  [default: as the thread's, else the current directory]",
)
@click.option(
    "--files", is_flag=True, help="Give the fork its own work tree, with the files of that step."
)
@click.option(
    "--into", metavar="PATH", help="The work tree's path.  [default: below ~/.local/state/uwf]"
)
def fork_command(session: Session, thread: str, *, message: str, **asked: Any) -> None:
    """Fork a thread: start a new one at a step of another.

    The new thread shares the history up to there, and has the state and the place of then; nothing
    is copied, and the other thread, even an archived one, stays as it is. At a step at which the
    thread has split it splits anew. Use it also where two machines continued one thread at the same
    time: the fork continues your side as a thread of its own, and the thread continues as at the
    remote.
    """
    if asked["at"] is not None and asked["from_role"] is not None:
        raise BadUsage(
            "--at and --from-role both say where the fork begins",
            code="two-places",
            hint="give one of the two",
        )
    into = asked["into"]
    if (into is not None) > asked["files"] or (asked["files"] and asked["workdir"] is not None):
        raise BadUsage(
            "--files makes the work directory, at the path of --into",
            code="two-workdirs",
            hint="give --files and --into, or --workdir alone",
        )
    request = ForkRequest(thread, asked["at"], asked["from_role"], message, asked["workdir"])
    store, caller, new = session.open_store(), caller_of(session), session.new_thread_id()
    path = {}
    if asked["files"]:
        forked, path["path"] = fork_with_files(store, caller, request, thread=new, into=into)
    else:
        forked = fork_thread(store, caller, request, thread=new)
    document = {
        "workflow": forked.workflow,
        "thread": forked.thread,
        "head": forked.head,
        "status": "ready",
        "depth": forked.depth,
        "forkedFrom": forked.forked_from,
        "commit": forked.at,
    }
    emit(session, document | path)
    if forked.follows is not None:
        note(f"thread {forked.forked_from} goes on as it is at {forked.follows}")
    point = read_snapshot(store, forked.at)
    spending = read_spending(store, point, point.get_present())
    if spending.thread != forked.forked_from and spending.present.limits:
        more = f"`uwf thread amend {forked.thread} --max-…` gives it its own"
        note(f"note: the limits of thread {spending.thread} do not hold for the fork: {more}")
    note_next(session, store, forked.thread)


# `uwf thread rm`.


@verb(
    "uwf thread rm 01J7K9M2",
    "uwf thread rm 01J7K9M2 01J7KB4Q --yes",
    exits={1: "a thread is active or unknown, or the user did not confirm", 4: "it is being used"},
)
@click.argument("threads", nargs=-1, required=True, metavar="THREAD...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def rm_command(session: Session, threads: tuple[str, ...], yes: bool) -> None:  # noqa: FBT001 (click's way)
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
    if not session.can_ask:
        raise BadUsage(
            f"there is no terminal to confirm the removal of {_count(len(removals))}",
            code="nobody-to-confirm",
            hint="say so: --yes",
            threads=[removal.thread for removal in removals],
        )
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
    if not confirm(f"Remove {_count(len(removals))} for good?"):
        raise Refused("nothing was removed", code="not-confirmed")


def _remove(session: Session, store: Store, removal: Removal) -> dict[str, Any]:
    removed = remove_thread(store, caller_of(session), removal)
    _note_remotes(removed)
    document = {
        "thread": removal.thread,
        "workflowName": removal.workflow_name,
        "status": removal.status,
        "depth": removal.depth,
        "commit": removal.commit,
        "remotes": removed.remotes,
        "parentThread": removal.parent,
        "work": None if removed.work is None else _view_work(removed.work),
    }
    return without_none(document, "parentThread", "work")


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
