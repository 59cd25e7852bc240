"""What a list says of a thread besides its row: its task, and what was last.

That costs two more objects a row, or three, so only lists for people have it.
"""

from typing import Any, NamedTuple

from uwf_git.commands.agent_run.activity import RUNNING
from uwf_git.errors import StoreDamaged
from uwf_git.model.event_words import first_line
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


class Summary(NamedTuple):
    """A thread in a few words."""

    task: str | None
    last: str | None


def summarize_thread(store: Store, row: dict[str, Any]) -> Summary:
    """Return what is to be said of the thread of a row of ``list_thread_rows``."""
    if "error" in row:
        return Summary(None, row["error"])
    try:
        head = find_head(store, ThreadId(row["thread"]))
        if head is None:
            return Summary(None, row["said"])
        snapshot = read_snapshot(store, head.commit)
        task = first_line(str(snapshot.get_start().payload["prompt"]))
        return Summary(task, _find_last(store, snapshot, row))
    except StoreDamaged as error:
        return Summary(None, error.message)


def _find_last(store: Store, snapshot: Snapshot, row: dict[str, Any]) -> str:
    """Return who is at work, or what is to be decided; else the newest event.

    Of an end the reason or the event before it: the end itself says no more than the status.
    """
    said: str = row["said"]
    if snapshot.record.event == "start" and row["status"] != RUNNING and "question" not in row:
        # It would repeat the task.
        return ""
    if row["status"] == RUNNING:
        from uwf_git.commands.agent_run.running import (  # noqa: PLC0415 (costs 20 ms, and few threads are active)
            find_running,
        )

        running = find_running(store, snapshot.record.thread)
        return said if running is None or running.role is None else f"{running.role} at work"
    if "question" in row:
        role, described = row["waiting"]["role"], _describe_role(snapshot, row)
        return f"{role}: {described}" if described else f"{role} waits for a person"
    record = snapshot.record
    if record.event == "attempt":
        return f"{record.role}: " + said.removeprefix(
            f"{record.role}: attempt {record.attempt} failed: "
        )
    if row["status"] in ENDED:
        reason = first_line(snapshot.body)
        return reason or read_snapshot(store, Oid(snapshot.commit.parents[0])).subject
    return said


def _describe_role(snapshot: Snapshot, row: dict[str, Any]) -> str:
    """Return the description of the role that a person plays, else the beginning of its prompt."""
    from uwf_git.commands.inspect.question import find_role  # noqa: PLC0415 (few threads wait)
    from uwf_git.model.workflow import parse_workflow  # noqa: PLC0415 (the same)

    workflow = parse_workflow(snapshot.get_node(snapshot.get_present().workflow))
    role = find_role(snapshot, workflow, row["waiting"]["role"])
    described = "" if role is None else first_line(role.description)
    return described or str(row["question"])
