"""`uwf thread fork`."""

from typing import Any

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.next_line import note_next
from uwf_git.commands.lifecycle.fork import ForkRequest, fork_thread
from uwf_git.errors import BadUsage


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
@click.option(
    "-m", "--message", default="", metavar="TEXT", help="The reason, recorded in the log."
)
@click.option(
    "--workdir",
    metavar="PATH",
    help="Where its agents run.  [default: as the thread's, else the current directory]",
)
@click.option("--files", is_flag=True, help="With the files of then, in a work tree of its own.")
@click.option("--into", metavar="PATH", help="Where that work tree is made.")
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
    reason = text_argument(message, "the message")
    request = ForkRequest(thread, asked["at"], asked["from_role"], reason, asked["workdir"])
    store, caller, new = session.open_store(), caller_of(session), session.new_thread_id()
    path = {}
    if asked["files"]:
        from uwf_git.commands.control.files import fork_with_files  # noqa: PLC0415 (start-up time)

        forked, path["path"] = fork_with_files(store, caller, request, thread=new, into=into)
    else:
        forked = fork_thread(store, caller, request, thread=new)
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
            **path,
        },
    )
    if forked.follows is not None:
        note(f"thread {forked.forked_from} goes on as it is at {forked.follows}")
    note_next(session, store, forked.thread)
