"""`uwf thread fork`."""

from typing import Any

import click

from uwf_git.cli.calling import caller_of
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.render import emit, note
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_fork import ForkRequest, fork_thread
from uwf_git.errors import BadUsage


class TwoPlaces(BadUsage):
    """Where a fork begins is said twice."""

    code = "two-places"

    def __init__(self) -> None:
        super().__init__(
            "--at and --from-role both say where the fork begins",
            hint="give one of the two",
        )


@verb(
    "uwf thread fork 01J7K9M2 --at 3 -m 'another way after the review'",
    "uwf thread fork 01J7K9M2 --at 4f2a91c",
    "uwf thread fork 01J7K9M2 --from-role reviewer",
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
    help="Before the newest step of this role, so that its turn is next again.",
)
@click.option("-m", "--message", default="", metavar="TEXT", help="Why; it stands in the log.")
@click.option(
    "--workdir",
    metavar="PATH",
    help="Where its agents run.  [default: as the thread's, else the current directory]",
)
def command(session: Session, thread: str, *, message: str, **asked: Any) -> None:
    """Begin a new thread at a step of another.

    The new thread shares the history up to there; nothing is copied, and the other thread, even
    an archived one, stays as it is. This is also how work is taken up that two machines did on
    one thread at the same time: fork it, and your side is a thread of its own; the other goes on
    as it is at the remote.
    """
    if asked["at"] is not None and asked["from_role"] is not None:
        raise TwoPlaces
    reason = text_argument(message, "the message")
    request = ForkRequest(thread, asked["at"], asked["from_role"], reason, asked["workdir"])
    forked = fork_thread(
        session.open_store(), caller_of(session), request, thread=session.new_thread_id()
    )
    emit(
        session,
        {
            "workflow": forked.workflow,
            "thread": forked.thread,
            "head": forked.head,
            "status": "ready",
            "depth": forked.depth,
            "forkedFrom": forked.forked_from,
            "commit": forked.at,
        },
    )
    if forked.follows is not None:
        note(f"thread {forked.forked_from} goes on as it is at {forked.follows}")
