"""What a shell offers while a person types: threads, workflows, roles, remotes."""

from typing import Any, NamedTuple

from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.errors import StoreDamaged, UwfError
from uwf_git.store.remotes.remotes import list_remotes
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head, resolve_thread
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

MOST_THREADS = 100


class Candidate(NamedTuple):
    word: str
    meaning: str


def offer_threads(
    store: Store, typed: str, *, statuses: frozenset[str] = frozenset(), archived: bool = False
) -> list[Candidate]:
    """Return the threads whose ids, or else whose row, match *typed*, newest first."""
    rows = list_thread_rows(store, ListRequest(archived, statuses=statuses, limit=MOST_THREADS))
    by_id = [row for row in rows if row["thread"].startswith(typed.upper())]
    offered = [Candidate(row["thread"], _describe(store, row)) for row in by_id or rows]
    return offered if by_id else [each for each in offered if typed.lower() in each.meaning.lower()]


def offer_workflows(store: Store, typed: str, *, cwd: str) -> list[Candidate]:
    """Return the workflows whose names begin with *typed*: the project's, then the registered."""
    from uwf_git.commands.workflow.find import list_workflows  # noqa: PLC0415 (few ask for them)

    return [
        Candidate(row["name"], row.get("description") or row.get("error", ""))
        for row in list_workflows(store, cwd=cwd)
        if row["name"].startswith(typed)
    ]


def offer_roles(
    store: Store, typed: str, *, cwd: str, thread: str | None = None, workflow: str | None = None
) -> list[Candidate]:
    """Return the roles that begin with *typed*: of a thread, of a workflow, or else of all."""
    from uwf_git.commands.workflow.find import (  # noqa: PLC0415 (few ask for them)
        find_workflow,
        list_workflows,
    )

    if thread is not None:
        workflow = _read(store, thread).record.workflow
    if workflow is not None:
        found = find_workflow(store, workflow, cwd=cwd).workflow
        owned = [(role, found.name) for role in found.roles]
    else:
        rows = list_workflows(store, cwd=cwd)
        owned = [(role, row["name"]) for row in rows for role in row.get("roles", ())]
    owners: dict[str, list[str]] = {}
    for role, owner in owned:
        owners.setdefault(role, []).append(owner)
    return [
        Candidate(role, f"of {', '.join(names)}")
        for role, names in owners.items()
        if role.startswith(typed)
    ]


def offer_remotes(store: Store, typed: str) -> list[Candidate]:
    remotes = list_remotes(store.config)
    return [Candidate(each.name, each.shown) for each in remotes if each.name.startswith(typed)]


def _describe(store: Store, row: dict[str, Any]) -> str:
    try:
        task = str(_read(store, row["thread"]).get_start().payload["prompt"])
    except (UwfError, StoreDamaged) as error:
        task = str(error)
    return f"{row['status']}, {row.get('workflowName', '')}: {task}"


def _read(store: Store, thread: str) -> Snapshot:
    return read_snapshot(store, get_head(store, resolve_thread(store, thread)).commit)
