"""`uwf thread list`: the threads of a store, newest first, and where each stands."""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from heapq import merge
from itertools import groupby, islice, takewhile
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from uwf_git.commands.family import Branch, list_branches
from uwf_git.commands.inspect.show import context, find_work, view_failure
from uwf_git.commands.split import Container, find_container, label_branch
from uwf_git.commands.turn.flow import find_limit
from uwf_git.commands.turn.next_move import find_join_problem, find_next_move
from uwf_git.errors import StoreDamaged, UwfError
from uwf_git.model.names import Oid, ThreadId, is_thread_id, read_time_ms
from uwf_git.model.text import first_line
from uwf_git.model.thread import ENDED, FROM_TASK_WORDS, STATUSES, TASK_WORDS, TransitionRecord
from uwf_git.store.remotes.remotes import RemoteHeads, list_remotes
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, find_head, get_head, list_threads
from uwf_git.store.threads.history import Snapshot, find_tip, read_snapshot, walk_trunks
from uwf_git.store.threads.local_files import RUNNING, find_driver, find_holder, may_be_active
from uwf_git.store.threads.naming import parse_thread_id, resolve_head, resolve_thread
from uwf_git.surroundings import Lazy

if TYPE_CHECKING:
    from uwf_git.commands.workflow import find as workflows
    from uwf_git.store import workflows as registry
else:
    # Few lists look for a workflow.
    workflows, registry = Lazy("uwf_git.commands.workflow.find"), Lazy("uwf_git.store.workflows")

# Where threads stand among others: which statuses need somebody, and which is shown first.
#
# The terminal and the page order threads by this one table.

Group = Literal["needs", "running", "others", "ended"]

DAMAGED = "damaged"
UNREADABLE = "unreadable"
"""Of a format that this uwf does not read; nothing is wrong with it."""

ASKED = (*STATUSES, RUNNING, DAMAGED, UNREADABLE, *FROM_TASK_WORDS)
"""The statuses that a list may be asked for."""

IN_GROUP: Mapping[Group, tuple[str, ...]] = {
    "needs": ("waiting", "failed", DAMAGED, UNREADABLE),
    "running": (RUNNING,),
    "others": ("paused", "ready", "split"),
    "ended": ("completed", "killed"),
}
"""The statuses of each group, in the order in which they are shown: what needs somebody first."""

_URGENT = ("failed", DAMAGED, UNREADABLE, "waiting", RUNNING, "paused", "ready")

HOLDING = frozenset({*IN_GROUP["needs"], "paused"})
"""The statuses in which a branch goes on only when somebody does something."""


def name_damage(error: StoreDamaged) -> str:
    return UNREADABLE if "format" in error.facts else DAMAGED


def order_statuses(*first: Group) -> tuple[str, ...]:
    groups = dict.fromkeys([*first, *IN_GROUP])
    return tuple(status for group in groups for status in IN_GROUP[group])


def group_active(statuses: Collection[str]) -> Group:
    """Return the group of a thread that has not ended, of its status and its branches'."""
    groups: tuple[Group, ...] = ("needs", "running")
    return next((group for group in groups if set(IN_GROUP[group]) & set(statuses)), "others")


def tell_standing(row: Mapping[str, Any], order: Iterable[str]) -> str:
    """Return the status that orders a row; of a thread that has split, its first branch."""
    below = row.get("branches") or {}
    status = str(row["status"])
    return next((each for each in order if each in below), status) if status == "split" else status


def view_urgent(status: str, below: Collection[str]) -> dict[str, str]:
    """Return ``branchStatus``: the most urgent status of the branches of a thread that has split.

    People see this status first. {} if the thread has not split, or all branches have ended.
    """
    urgent = next((each for each in _URGENT if each in below), None)
    return {"branchStatus": urgent} if status == "split" and urgent is not None else {}


# Branches of a thread as people look at them: what each is doing, and what holds the thread up.
#
# A branch that has not begun here is ``ready``. One that cannot be read is a row that says so.

_MOST_ASKED = 16


def find_status(store: Store, record: TransitionRecord) -> str:
    """Return the status to show of a thread: ``running`` while a process works on it."""
    thread = record.thread
    if record.status not in {"ready", "waiting"} or not may_be_active(store, thread):
        return record.status
    if record.status == "ready" and (find_holder(store, thread) or find_driver(store, thread)):
        return RUNNING
    return find_work(store, thread, record.status)[0]


def view_branches(store: Store, tip: Snapshot) -> list[dict[str, Any]]:
    """Return the documents of the branches at *tip*, with their own ``branches``."""
    found = tip.get_present().split
    if found is None:
        return []
    container = find_container(tip, found.at)
    return [_view_branch(store, container, branch) for branch in list_branches(store, tip)]


def _view_branch(store: Store, container: Container, branch: Branch) -> dict[str, Any]:
    view: dict[str, Any] = {
        "number": branch.number,
        "label": label_branch(container, branch.number),
        "thread": branch.child.thread,
    }
    if branch.head is None:
        return {**view, "status": "ready", "depth": 0, "said": None}
    try:
        snapshot = read_snapshot(store, branch.head.commit)
        record = snapshot.record
        view["label"] = label_branch(container, branch.number, snapshot)
        error = view_failure(snapshot, snapshot.get_present())
        inner = view_branches(store, snapshot)
    except StoreDamaged as damage:
        return {**view, "status": name_damage(damage), "error": damage.message}
    view |= {"status": find_status(store, record), "depth": record.depth, "said": snapshot.subject}
    if error is not None:
        view["error"] = error["message"]
    return {**view, "branches": inner} if inner else view


def count_branches(store: Store, tip: Snapshot) -> dict[str, int]:
    """Count the branches below *tip* by status; a branch that has split counts as its branches."""
    return count_rows(view_branches(store, tip))


def count_rows(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Count what ``view_branches`` returned by status; unknown ones come last."""
    counts = Counter(row["status"] for row in _walk(rows))
    ranks = {status: rank for rank, status in enumerate(order_statuses())}
    order = sorted(counts, key=lambda each: (ranks.get(each, len(ranks)), each))
    return {status: counts[status] for status in order}


def _walk_all(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield row
        yield from _walk_all(row.get("branches", []))


def _walk(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (row for row in _walk_all(rows) if "branches" not in row)


def find_held_by(
    store: Store, tip: Snapshot, branches: list[dict[str, Any]], problem: UwfError | None
) -> list[dict[str, Any]]:
    """Return what keeps the thread at *tip* from going on.

    A thread around it, a branch that needs somebody, a limit, branches that cannot be joined, or
    *problem*, why its own next role cannot be decided. *branches* come from ``view_branches``.
    """
    held: list[dict[str, Any]] = [
        {name: row[name] for name in ("thread", "label", "status", "error") if name in row}
        for row in _walk_all(branches)
        if row["status"] in HOLDING
    ]
    # The threads around a branch may let it take no step.
    trunks = [] if tip.record.status in ENDED else [each.record for each in walk_trunks(store, tip)]
    return [
        *(
            {"thread": each.thread, "status": each.status}
            for each in trunks
            if each.status in {"paused", *ENDED}
        ),
        *held,
        *_find_undecided(store, branches),
        *_find_limit(store, tip, branches),
        *_find_conflicts(store, tip, branches),
        *([view_problem(tip.record.thread, "ready", problem)] if problem is not None else []),
    ]


def is_stuck(held: dict[str, Any]) -> bool:
    """Tell whether *held*, one row of ``find_held_by``, is a step that cannot be decided."""
    return "error" in held and held["status"] in {"ready", "split"}


def _find_conflicts(
    store: Store, tip: Snapshot, branches: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield why branches that have all ended cannot be joined, of the thread and of those below."""
    if tip.get_present().split is None:
        return
    split = [row["thread"] for row in _walk_all(branches) if "branches" in row]
    below = (read_snapshot(store, get_head(store, each).commit) for each in split)
    for each in (tip, *below):
        # A branch that cannot be read says so itself.
        problem = None
        with suppress(StoreDamaged):
            problem = find_join_problem(store, each)
        if problem is not None:
            thread = problem.facts.get("thread", each.record.thread)
            status = read_snapshot(store, get_head(store, thread).commit).record.status
            yield view_problem(thread, status, problem)


def _find_undecided(store: Store, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the branches whose next step is held up by an expression without an answer.

    Each branch is asked, so not while something is at work, and only the first of many.
    """
    leaves = list(_walk(rows))
    if any(row["status"] == RUNNING for row in leaves):
        return
    for row in [row for row in leaves if row["status"] == "ready"][:_MOST_ASKED]:
        tip = find_tip(store, row["thread"])
        if tip is not None and (problem := find_next_move(tip).problem) is not None:
            yield {"label": row["label"], **view_problem(row["thread"], "ready", problem)}


def _find_limit(
    store: Store, tip: Snapshot, branches: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the limit that lets no branch take a step, or the thread if it is a branch itself."""
    statuses = {row["status"] for row in _walk(branches)} or {tip.record.status}
    limit = None
    # What a branch that cannot be read has spent is not known.
    with suppress(StoreDamaged):
        limit = None if statuses <= ENDED else find_limit(store, tip)
    if limit is not None:
        yield view_problem(limit.facts["thread"], "limit", limit)


def view_problem(thread: ThreadId, status: str, problem: UwfError) -> dict[str, Any]:
    view = {"thread": thread, "status": status, "error": problem.message}
    return view if problem.hint is None else {**view, "hint": problem.hint}


# `uwf thread list`: the threads of a store, newest first.
#
# A row costs one commit to read, and one for each branch that the thread has now. A damaged
# thread is one row that says so. Whether one is ``running`` is checked only if it has run files
# or locks.

_LONG_MS = 7 * 24 * 3600 * 1000


class ListRequest(NamedTuple):
    archived: bool = False
    """Whether to include ended threads (``--all``), whatever *statuses* has."""

    workflow: str | None = None

    statuses: frozenset[str] = frozenset()
    """Only threads with one of these statuses, or of the words of seed 004; empty: any status."""

    after_ms: int | None = None
    """Only threads that were updated at this time or later, in milliseconds since 1970."""

    before_ms: int | None = None
    """Only threads that were updated before this time."""

    offset: int = 0

    parent: str | None = None
    """Only its branches, and threads that its agents started, also ended: an id or a prefix."""

    branches: bool = False
    """Whether to list branches beside their threads; *statuses* or *parent* list them anyway."""

    limit: int | None = None

    cwd: str | None = None
    """The folder whose project's workflows are known too."""


def list_thread_rows(store: Store, request: ListRequest) -> list[dict[str, Any]]:
    """List the threads that *request* selects, newest first.

    A status that only ended threads have includes the archived threads, and so does a parent.
    """
    statuses = frozenset(FROM_TASK_WORDS.get(each, each) for each in request.statuses)
    request = request._replace(statuses=statuses)
    archived = request.archived or bool(statuses & ENDED)
    if request.parent is not None:
        # A child may be here without its parent, whose whole id is enough.
        known = parse_thread_id(request.parent) or resolve_thread(store, request.parent)
        request, archived = request._replace(parent=known), True
    heads = RemoteHeads(store)
    with_branches = request.branches or bool(statuses) or request.parent is not None
    rows = (
        view_thread_row(store, heads, thread, archived=archived, with_branches=with_branches)
        for thread in _walk_refs(store, archived=archived)
    )
    wanted = (row for row in rows if row is not None and _is_wanted(row, request))
    end = None if request.limit is None else request.offset + request.limit
    found = list(islice(wanted, request.offset, end))
    if not found and request.workflow is not None:
        meant = resolve_asked(store, request.workflow, request.cwd)
        if meant != request.workflow:
            return list_thread_rows(store, request._replace(workflow=meant))
    return found


def list_lately_ended(store: Store, request: ListRequest) -> list[dict[str, Any]]:
    """List the ended threads that *request*, with a time, selects; none that began long before."""
    first_ms = (request.after_ms or 0) - _LONG_MS
    threads = takewhile(
        lambda thread: read_time_ms(thread) >= first_ms, list_threads(store, archived=True)
    )
    shown = request.branches
    rows = (view_thread_row(store, None, thread, with_branches=shown) for thread in threads)
    wanted = (row for row in rows if row is not None and _is_wanted(row, request))
    return list(islice(wanted, request.limit))


def resolve_asked(store: Store, text: str, cwd: str | None) -> str:
    """Return the name or hash that *text* means, as threads have it.

    Refuse one that no workflow has: of the store, its threads, or the project.
    """
    name = unicodedata.normalize("NFC", text)
    rows = (view_thread_row(store, None, thread) for thread in _walk_refs(store, archived=True))
    if name in registry.list_names(store) or any(row and _is_of(row, name) for row in rows):
        return name
    # One that was removed, or cannot be read, is known.
    with suppress(workflows.WorkflowRemoved, workflows.BadLocalWorkflow, StoreDamaged):
        found = workflows.find_workflow(store, text, cwd=cwd).workflow
        return name if found.name == name else found.hash
    return name


def walk_threads(store: Store, *, archived: bool) -> Iterator[ThreadId]:
    """Yield the active threads, with *archived* also the ended ones, newest first."""
    yield from _walk_refs(store, archived=True) if archived else list_threads(store, archived=False)


def _walk_refs(store: Store, *, archived: bool) -> Iterator[ThreadId]:
    """Yield as `walk_threads`, and without a look at each thread also ended threads of a crash."""
    active = (ThreadId(name) for name in store.refs.names(ACTIVE)[::-1] if is_thread_id(name))
    ended = list_threads(store, archived=True) if archived else []
    # Each once: a thread may be archived between the two listings.
    for thread, _again in groupby(merge(active, ended, reverse=True)):
        yield thread


def view_thread_row(
    store: Store,
    heads: RemoteHeads | None,
    thread: ThreadId,
    *,
    archived: bool = True,
    with_branches: bool = True,
) -> dict[str, Any] | None:
    """Return the row of *thread*.

    None if the thread is gone, has ended and *archived* is false, or is a branch and
    *with_branches* is false. Without *heads* the row does not say whether the thread has diverged
    from a remote.
    """
    try:
        head = find_head(store, thread)
        if head is None or (head.archived and not archived):
            return None
        snapshot = read_snapshot(store, head.commit)
        waits = _view_wait(snapshot) if snapshot.record.status == "waiting" else {}
        trunk = snapshot.get_trunk()
        if trunk is not None and not with_branches and find_head(store, trunk) is not None:
            return None
        has_split = snapshot.record.status in {"split", "paused"}
        counts = count_branches(store, snapshot) if has_split else {}
    except StoreDamaged as error:
        return {"thread": thread, "status": name_damage(error), "error": error.message}
    record = snapshot.record
    status = find_status(store, record)
    return {
        "thread": thread,
        "status": status,
        "taskStatus": TASK_WORDS.get(status, status),
        "workflow": record.workflow,
        "workflowName": record.workflow_name,
        "depth": record.depth,
        "head": record.node,
        "lastUpdateTime": snapshot.commit.time_s * 1000,
        "said": snapshot.subject,
        **({} if record.parent_thread is None else {"parentThread": record.parent_thread}),
        **({} if trunk is None else {"branchOf": trunk}),
        **({"branches": counts} if counts else {}),
        **view_urgent(status, counts),
        **waits,
        **({} if heads is None else view_divergence(heads, thread, head.commit)),
    }


def find_divergence(store: Store, thread: ThreadId, here: Oid) -> dict[str, Any]:
    return view_divergence(RemoteHeads(store), thread, here)


def view_divergence(heads: RemoteHeads, thread: ThreadId, here: Oid) -> dict[str, Any]:
    """Return the remotes from which *thread*, at *here*, has diverged."""
    found = [each._asdict() for each in heads.find_thread(thread, here)]
    return {"diverged": found} if found else {}


def _view_wait(snapshot: Snapshot) -> dict[str, Any]:
    """Return the role that a thread waits for, and the first line of the question to a person."""
    present = snapshot.get_present()
    if present.waiting is None:
        return {}
    waiting = present.waiting._asdict()
    view = {"waiting": {name: each for name, each in waiting.items() if each is not None}}
    question = context.first_question_line(snapshot, present)
    return view if question is None else view | {"question": question}


def _is_wanted(row: dict[str, Any], request: ListRequest) -> bool:
    if request.statuses and row["status"] not in request.statuses:
        return False
    if request.parent is not None and row.get("parentThread") != request.parent:
        return False
    if request.workflow is not None and not _is_of(row, request.workflow):
        return False
    if request.after_ms is None and request.before_ms is None:
        return True
    updated_ms = row.get("lastUpdateTime")
    if updated_ms is None:
        # The time of a damaged thread is unknown.
        return False
    # git has seconds: a commit in the second of *after_ms* counts as after it.
    after_ms = (request.after_ms or 0) // 1000 * 1000
    return after_ms <= updated_ms and (request.before_ms is None or updated_ms < request.before_ms)


def _is_of(row: dict[str, Any], workflow: str) -> bool:
    return workflow in {row.get("workflow"), row.get("workflowName")}


# What a list says of a thread besides its row: its task, and what was last.
#
# That costs two more objects a row, or three, so only lists for people have it.


class Summary(NamedTuple):
    task: str | None
    last: str | None


def summarize_thread(store: Store, row: dict[str, Any]) -> Summary:
    """Return what is to be said of the thread of a row of ``list_thread_rows``."""
    if "error" in row:
        return Summary(None, row["error"])
    try:
        snapshot = find_tip(store, ThreadId(row["thread"]))
        if snapshot is None:
            return Summary(None, row["said"])
        task = first_line(str(snapshot.get_start().payload["prompt"]))
        return Summary(task, _find_last(store, snapshot, row))
    except StoreDamaged as error:
        return Summary(None, error.message)


def _find_last(store: Store, snapshot: Snapshot, row: dict[str, Any]) -> str:
    """Find who is at work, or what is to be decided; else the newest event.

    For an end, find the reason or the event before: the end itself says no more than the status.
    """
    said: str = row["said"]
    if snapshot.record.event == "start" and row["status"] != RUNNING and "question" not in row:
        # It would repeat the task.
        return ""
    if row["status"] == RUNNING:
        _status, running = find_work(store, snapshot.record.thread, RUNNING)
        return said if running is None or running.role is None else f"{running.role} at work"
    if "question" in row:
        role, asked = row["waiting"]["role"], row["question"]
        return f"{role}: {asked}" if asked else f"{role} waits for a person"
    record = snapshot.record
    if record.event == "attempt":
        known = f"{record.role}: attempt {record.attempt} failed: "
        return f"{record.role}: {said.removeprefix(known)}"
    if row["status"] in ENDED:
        reason = first_line(snapshot.body)
        return reason or read_snapshot(store, Oid(snapshot.commit.parents[0])).subject
    return said


# What a shell offers while a person types: threads, workflows, roles, remotes.

MOST_THREADS = 100


class Candidate(NamedTuple):
    word: str
    meaning: str


def offer_threads(
    store: Store, typed: str, *, statuses: frozenset[str] = frozenset(), archived: bool = False
) -> list[Candidate]:
    """Return the threads whose ids, or else whose row, match *typed*, newest first."""
    # Branches too, if a word of them is there: they are many.
    request = ListRequest(archived, statuses=statuses, branches=bool(typed), limit=MOST_THREADS)
    rows = list_thread_rows(store, request)
    by_id = [row for row in rows if row["thread"].startswith(typed.upper())]
    offered = [Candidate(row["thread"], _describe(store, row)) for row in by_id or rows]
    return offered if by_id else [each for each in offered if typed.lower() in each.meaning.lower()]


def offer_workflows(
    store: Store, typed: str, *, cwd: str, with_shipped: bool = False
) -> list[Candidate]:
    """Return the workflows whose names begin with *typed*: the project's, then the registered."""
    list_rows = workflows.list_all_workflows if with_shipped else workflows.list_workflows
    return [
        Candidate(row["name"], row.get("description") or row.get("error", ""))
        for row in list_rows(store, cwd=cwd)
        if row["name"].startswith(typed)
    ]


def offer_roles(
    store: Store, typed: str, *, cwd: str, thread: str | None = None, workflow: str | None = None
) -> list[Candidate]:
    """Return the roles that begin with *typed*: of a thread, of a workflow, or else of all."""
    if thread is not None:
        workflow = read_snapshot(store, resolve_head(store, thread).commit).record.workflow
    if workflow is not None:
        found = workflows.find_workflow(store, workflow, cwd=cwd).workflow
        owned = [(role, found.name) for role in found.roles]
    else:
        rows = workflows.list_workflows(store, cwd=cwd)
        owned = [(role, row["name"]) for row in rows for role in row.get("roles", ())]
    owners: dict[str, list[str]] = {}
    for role, owner in owned:
        if role.startswith(typed):
            owners.setdefault(role, []).append(owner)
    return [Candidate(role, f"of {', '.join(names)}") for role, names in owners.items()]


def offer_remotes(store: Store, typed: str) -> list[Candidate]:
    remotes = list_remotes(store.config)
    return [Candidate(each.name, each.shown) for each in remotes if each.name.startswith(typed)]


def _describe(store: Store, row: dict[str, Any]) -> str:
    summary = summarize_thread(store, row)
    return f"{row['status']}, {row.get('workflowName', '')}: {summary.task or summary.last}"
