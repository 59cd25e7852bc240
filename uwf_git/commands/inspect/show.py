"""`uwf thread show`: the present of a thread as a document, and what to type then."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from uwf_git.commands.family import find_number
from uwf_git.commands.split import find_node, is_work, name_work
from uwf_git.commands.turn import next_move
from uwf_git.commands.turn.flow import (
    FlowPlace,
    add_branches,
    count_own,
    fill_template,
    find_turn_place,
    find_work_retries,
    read_spending,
)
from uwf_git.commands.turn.next_move import Advice, NextMove
from uwf_git.commands.worktree.record import find_worktree, list_worktrees
from uwf_git.engine.flow_state import describe_rejection, find_suggestion, list_issues
from uwf_git.engine.moderator import LazyList, lazy_list
from uwf_git.errors import StoreDamaged, UwfError
from uwf_git.model.builtin import AGENT_CONFIG, ATTEMPT, STEP, find_reference
from uwf_git.model.limits import list_used
from uwf_git.model.names import NodeHash, Oid, ThreadId
from uwf_git.model.node import Node
from uwf_git.model.text import find_outputs
from uwf_git.model.thread import ENDED, TASK_WORDS, ThreadState
from uwf_git.model.workflow import START
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head
from uwf_git.store.threads.history import (
    Snapshot,
    StepChain,
    check_type,
    find_newest_step,
    find_previous,
    get_role,
    get_typed,
    get_workflow,
    read_at,
    read_snapshot,
    walk_history,
)
from uwf_git.store.threads.local_files import (
    RUNNING,
    find_kill_request,
    find_workdir,
    may_be_active,
)
from uwf_git.store.threads.naming import resolve_head
from uwf_git.surroundings import Lazy

if TYPE_CHECKING:
    from uwf_git.commands.agent_run import runs as agent_runs
    from uwf_git.commands.agent_run.runs import Running
    from uwf_git.commands.inspect import context as context  # noqa: PLC0414 (others import it from here)
    from uwf_git.commands.inspect import graph
    from uwf_git.commands.inspect import list as lists
    from uwf_git.commands.worktree import chain as file_chain
else:
    # Made of this module, and few threads need them.
    lists = Lazy("uwf_git.commands.inspect.list")
    graph = Lazy("uwf_git.commands.inspect.graph")
    context = Lazy("uwf_git.commands.inspect.context")
    file_chain = Lazy("uwf_git.commands.worktree.chain")
    agent_runs = Lazy("uwf_git.commands.agent_run.runs")  # 20 ms

# Step views: step and attempt nodes as documents.
#
# Keys are only ever added. A document is never the stored payload, so that the format may change.

_COPIED = ("startedAt", "durationMs", "usage", "session", "rung", "state")
_REFERRED = {"prompt": "prompt", "trace": "trace", "log": "stderr", "execContext": "execContext"}
"""The nodes of a step that a view only names; an attempt's log is in its view."""


def view_step(snapshot: Snapshot, step: Node, commands: "Commands | None" = None) -> dict[str, Any]:
    """Return the document of a StepNode; *snapshot* holds the nodes that it refers to."""
    payload = check_type(step, STEP).payload
    view: dict[str, Any] = {
        "hash": step.hash,
        "role": payload["role"],
        "meta": payload["meta"],
        "content": get_text(snapshot, payload.get("content")),
        "agent": (commands or Commands(snapshot)).get(payload.get("agent")),
        "timestamp": step.timestamp,
    }
    view |= {name: payload[name] for name in _COPIED if name in payload}
    return view | _name_referred(payload, _REFERRED)


def _name_referred(payload: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    # Only the names: a prompt may have a hundred pages, and `json-cas get` prints it.
    present = [name for name in names if _REFERRED[name] in payload]
    return {name: find_reference(payload[_REFERRED[name]]) for name in present}


def view_steps(snapshot: Snapshot, before: Sequence[int] = ()) -> LazyList[dict[str, Any]]:
    """Return the documents of all steps, *before* included, oldest first, each read on access."""
    commands, chain = Commands(snapshot), StepChain(snapshot, before)
    return lazy_list(len(chain), lambda place: view_step(snapshot, chain.get(place), commands))


def view_branches(tip: Snapshot) -> Iterator[dict[str, Any]]:
    """Yield what the branches of the newest step said last, or, if it is no join, that step.

    Before a verdict stands the work.
    """
    newest = find_newest_step(tip)
    if newest.record.event == "join":
        for end in newest.commit.parents[1:]:
            yield from view_branches(read_at(tip.objects, end))
        return
    node = tip.get_head_node()
    before = None if is_work(tip) else find_previous(node)
    for each in (*([] if before is None else [tip.get_node(before)]), node):
        if each.type == STEP:
            said = {name: each.payload[name] for name in ("role", "meta")}
            yield said | {"content": get_text(tip, each.payload["content"])}


def view_attempt(snapshot: Snapshot, name: NodeHash | None) -> dict[str, Any] | None:
    if name is None:
        return None
    attempt = get_typed(snapshot, name, ATTEMPT)
    payload = attempt.payload
    view: dict[str, Any] = {
        "hash": attempt.hash,
        "role": payload["role"],
        "error": payload["error"],
        "content": get_text(snapshot, payload.get("content")),
        "stderr": get_text(snapshot, payload.get("stderr")),
        "agent": Commands(snapshot).get(payload.get("agent")),
        "timestamp": attempt.timestamp,
    }
    copied = ("exitCode", "resetAt", *_COPIED)
    view |= {name: payload[name] for name in copied if name in payload}
    return view | _name_referred(payload, ("prompt", "trace"))


def view_error(snapshot: Snapshot, present: ThreadState) -> dict[str, Any] | None:
    """Return why the newest attempt failed, unless the thread has given up its place."""
    if not present.attempts or present.last_attempt is None:
        return None
    error: dict[str, Any] = get_typed(snapshot, present.last_attempt, ATTEMPT).payload["error"]
    return {"kind": error["kind"], "message": error["message"]}


def view_failure(snapshot: Snapshot, present: ThreadState) -> dict[str, Any] | None:
    verdict = find_verdict(snapshot, present) if present.last_attempt is None else None
    if verdict is None:
        return view_error(snapshot, present)
    told = describe_rejection(verdict.payload["role"], verdict.payload["meta"])
    return {"kind": "rejected", "message": told}


def find_verdict(snapshot: Snapshot, present: ThreadState) -> Node | None:
    """Return the verdict that ended the last try, unless the next try is done."""
    tried = present.tried
    if tried is None or tried.is_verdict or tried.reason is None:
        return None
    node = snapshot.get_node(tried.reason)
    return node if node.type == STEP else None


def get_text(snapshot: Snapshot, ref: Any) -> str:
    target = find_reference(ref)
    return "" if target is None else str(snapshot.get_node(target).payload)


class Commands:
    __slots__ = ("_known", "_snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._known: dict[NodeHash, str] = {}

    def describe(self, ref: Any) -> str:
        """Return the command that a reference points at, or all settings if there are more."""
        target = find_reference(ref)
        if target is None:
            return ""
        agent = get_typed(self._snapshot, target, AGENT_CONFIG).payload
        return self.get(ref) if len(agent) == 1 else json.dumps(agent, ensure_ascii=False)

    def get(self, ref: Any) -> str:
        """Return the command of the AgentConfig that a reference points at; "" for no reference."""
        target = find_reference(ref)
        if target is None:
            return ""
        if target not in self._known:
            config = get_typed(self._snapshot, target, AGENT_CONFIG)
            self._known[target] = str(config.payload["command"])
        return self._known[target]


# How often a step failed before it succeeded, from the commits of its thread.


def count_failed_by_role(store: Store, tip: Oid, *, most: int) -> dict[str, int]:
    """Count the failed attempts of each role; {} for a thread of *most* commits."""
    counts: Counter[str] = Counter()
    with suppress(StoreDamaged):
        for number, snapshot in enumerate(walk_history(store, tip, through_forks=True), 1):
            if number == most:
                return {}
            if snapshot.record.event == "attempt" and snapshot.record.role is not None:
                counts[snapshot.record.role] += 1
    return dict(counts)


# `uwf thread show`: the present of a thread as a document.
#
# Source: seed 000 section 1.4; the names are those of seed 004's TaskHandle.


class Moment(NamedTuple):
    snapshot: Snapshot
    status: str
    """The stored status, or ``running``."""

    running: "Running | None"


class ShownThread(NamedTuple):
    document: dict[str, Any]
    snapshot: Snapshot
    move: NextMove
    spent: ThreadState
    """Its state, with what its branches spent; ``depth`` counts their steps as well."""


def show_thread(store: Store, text: str, *, full: bool = False) -> dict[str, Any]:
    return view_thread(store, text, full=full).document


def view_thread(
    store: Store, text: str, *, full: bool = False, with_family: bool = True
) -> ShownThread:
    """Return the thread *text*: its document has the newest step.

    It has the newest attempt with its output if attempts have failed since that step, and the
    question if it waits for a person. *full* adds every step, oldest first; without *with_family*
    nothing is said of its branches, what they spent, and what holds it up.
    """
    moment = read_moment(store, resolve_head(store, text))
    return view_moment(store, moment, full=full, with_family=with_family)


def read_moment(store: Store, head: Head) -> Moment:
    """Read the commit of *head*; if nothing works on its thread, no other object and no lock."""
    snapshot = read_snapshot(store, head.commit)
    return Moment(snapshot, *find_work(store, head.thread, snapshot.record.status))


def view_moment(
    store: Store, moment: Moment, *, full: bool = False, with_family: bool = True
) -> ShownThread:
    """Return the thread of *moment*, as ``view_thread``."""
    snapshot, status, running = moment
    snapshot = snapshot._replace(objects=store.objects)
    record, thread = snapshot.record, snapshot.record.thread
    present = snapshot.get_present()
    start = snapshot.get_start()
    newest = snapshot.get_head_node()
    attempt = view_attempt(snapshot, present.last_attempt)
    # A commit time is cut to seconds, and may lie before the start or the attempt.
    tried_at = 0 if attempt is None else attempt["timestamp"]
    updated_at = max(snapshot.recorded_ms(newest), present.started_at, tried_at)
    move = next_move.find_next_move(snapshot)
    # Which try comes next or is under way, where another agent verifies the work.
    at = move.at or (present.trying if present.tried is None else present.tried.at)
    place = find_turn_place(snapshot, at)
    tried = view_try(store, place, present)
    spent = read_spent(store, snapshot, present) if with_family else present
    document: dict[str, Any] = {
        "thread": thread,
        "workflow": record.workflow,
        "workflowName": record.workflow_name,
        "status": status,
        "taskStatus": TASK_WORDS.get(status, status),
        "head": record.node,
        "depth": record.depth,
        "parentThread": record.parent_thread,
        "threadDepth": snapshot.get_nesting(),
        "prompt": start.payload["prompt"],
        **_view_position(snapshot, move, running),
        "startTime": present.started_at,
        "lastUpdateTime": updated_at,
        "endTime": updated_at if record.status in ENDED else None,
        "error": view_failure(snapshot, present),
        "attempts": present.attempts,
        "failures": present.failures,
        "visits": dict(present.visits),
        "state": dict(present.state),
        "usage": dict(spent.usage),
        "executionTime": spent.execution_ms,
        "limits": dict(present.limits),
        **_view_used(store, snapshot, present),
        **({} if tried is None else {"try": tried}),
        **_view_agents(snapshot, present),
        "workdir": find_workdir(store, thread),
        **_view_work(store, snapshot),
        "commit": snapshot.commit.oid,
        "said": snapshot.subject,
    }
    if store.has_remotes:
        document |= lists.find_divergence(store, thread, snapshot.commit.oid)
    document |= _view_now(store, snapshot, present, running)
    if with_family:
        document |= _view_family(store, snapshot, present, move)
    document |= _view_steps(store, snapshot, newest, document.get("branches", []), full=full)
    document["lastAttempt"] = attempt
    return ShownThread(document, snapshot, move, spent)


def read_spent(store: Store, snapshot: Snapshot, present: ThreadState) -> ThreadState:
    """Return what ``add_branches`` does; *present* itself if a branch cannot be read."""
    with suppress(StoreDamaged):
        return add_branches(store, snapshot, present)
    return present


def _view_steps(
    store: Store, snapshot: Snapshot, newest: Node, branches: list[dict[str, Any]], *, full: bool
) -> dict[str, Any]:
    """Return the newest step, or all, and the branches that a join as the newest goes on without.

    *branches* get their steps as well.
    """
    meta = newest.payload.get("meta")
    is_join = isinstance(meta, dict) and "branches" in meta
    view: dict[str, Any] = {} if full else {"step": _view_newest_step(store, snapshot, newest)}
    if not (full or is_join):
        return view
    if full:
        view["steps"] = graph.view_all_steps(store, snapshot)
        graph.add_steps(store, branches)
    if is_join:
        with suppress(StoreDamaged):
            given_up = graph.view_given_up(snapshot)
            return {**view, "givenUp": given_up} if given_up else view
    return view


def _view_work(store: Store, snapshot: Snapshot) -> dict[str, Any]:
    """Return where the work is: of branches that work apart, or of this branch."""
    thread, parent = snapshot.record.thread, snapshot.record.parent_thread
    own = None if parent is None else find_worktree(store, parent, thread)
    found = [*([] if own is None else [own]), *list_worktrees(store, thread)]
    if not found:
        return {}

    work = [
        {
            "thread": each.thread,
            **_name_branch(store, each.thread),
            "ref": name_work(each.thread),
            "commit": each.commit,
            "repository": each.repository,
            "worktree": None if each.is_removed else each.path,
            **({"inner": [one._asdict() for one in each.inner]} if each.inner else {}),
        }
        for each in found
    ]
    return {"work": work}


def _name_branch(store: Store, thread: ThreadId) -> dict[str, Any]:
    with suppress(StoreDamaged):
        if found := find_number(store, thread):
            return dict(zip(("number", "label"), found, strict=True))
    return {}


def _view_newest_step(store: Store, snapshot: Snapshot, newest: Node) -> dict[str, Any] | None:
    if not snapshot.record.depth:
        return None
    step = view_step(snapshot, newest)
    # Mostly it is the tip itself.
    taken = snapshot if snapshot.record.event == "step" else find_newest_step(snapshot)
    files = taken.record.files
    if files is not None:
        step["files"] = view_files(store, snapshot.record.thread, [files])[files]
    return step


def view_files(store: Store, thread: ThreadId, named: list[str]) -> dict[str, dict[str, Any]]:
    """Return what is known of the files that steps changed, by their `Uwf-Files`."""
    return file_chain.view_ranges(store, thread, named)


def _view_family(
    store: Store, snapshot: Snapshot, present: ThreadState, move: NextMove
) -> dict[str, Any]:
    """Return the branches of a thread, its parent if it is a branch, and what holds it up."""
    is_alone = present.split is None and snapshot.record.parent_thread is None
    if is_alone and not move.may_be_held(snapshot):
        return {}
    branches = lists.view_branches(store, snapshot)
    view: dict[str, Any] = {"branches": branches} if branches else {}
    view |= lists.view_urgent(snapshot.record.status, lists.count_rows(branches))
    trunk = snapshot.get_trunk()
    if trunk is not None:
        view["branchOf"] = trunk
    problem = move.problem if snapshot.record.status == "ready" else None
    held = lists.find_held_by(store, snapshot, branches, problem)
    return {**view, "heldBy": held} if held else view


def _view_position(snapshot: Snapshot, move: NextMove, running: "Running | None") -> dict[str, Any]:
    """Return who is at work, or whose turn it is, and who was before. Source: seed 004."""
    present = snapshot.get_present()
    at_work = None if running is None else running.role
    role = at_work or move.turn_of
    node = find_node(snapshot, move.at) if at_work in {None, move.role} else None
    turn = None if node is None else node.iteration
    if node is None and role is not None:
        turn = count_own(snapshot, present).get(role, 0) + 1
    last = find_node(snapshot, present.at)
    last_node = None if present.role == START else present.role
    return {
        "currentNode": role if node is None else node.id,
        "currentIteration": turn,
        "lastNode": last_node if last is None else last.id,
        "next": move.role,
    }


def _view_used(store: Store, snapshot: Snapshot, present: ThreadState) -> dict[str, Any]:
    if not present.limits or snapshot.get_trunk() is not None:
        return {}
    with suppress(StoreDamaged):
        # What a branch that cannot be read has spent is not known.
        return {"limitsUsed": list_used(read_spending(store, snapshot, present).present)}
    return {}


def find_work(store: Store, thread: ThreadId, status: str) -> "tuple[str, Running | None]":
    """Return the status to show of a thread with *status*, and the agent that is at work."""
    if not may_be_active(store, thread):
        return status, None
    running = agent_runs.find_running(store, thread)
    return agent_runs.show_status(status, running), running


def _view_now(
    store: Store, snapshot: Snapshot, present: ThreadState, running: "Running | None"
) -> dict[str, Any]:
    """Return what runs, what the thread waits for, and why it is paused, as far as it applies."""
    view: dict[str, Any] = {}
    if running is not None:
        view["running"] = running.view()
    if present.waiting is not None:
        view["waiting"] = context.view_waiting(store, snapshot, present)
        question = context.view_question(store, snapshot, present)
        if question is not None:
            view["question"] = question
    if present.paused_from is not None:
        view["pausedFrom"] = present.paused_from
    if present.hint:
        view["hint"] = present.hint
    steered = next_move.find_steered(store, snapshot)
    reason = _find_reason(snapshot, present) if steered is None else steered.reason
    if reason:
        view["reason"] = reason
    if steered is not None:
        view["by"] = steered.by
    return view


def _find_reason(snapshot: Snapshot, present: ThreadState) -> str:
    """Return the reason that was given for the newest event; for a failure, its error."""
    if snapshot.record.event in {"wait", "split"}:
        # The body is the question, or lists the branches: the document has these in full.
        return ""
    if snapshot.record.event == "attempt" and present.last_attempt is not None:
        # The body is the end of the agent's log.
        error = get_typed(snapshot, present.last_attempt, ATTEMPT).payload["error"]["message"]
        given_up = "" if present.attempts else f"{snapshot.record.role} was given up: "
        return f"{given_up}{error}"
    return snapshot.body


def _view_agents(snapshot: Snapshot, present: ThreadState) -> dict[str, Any]:
    agents = {
        role: get_typed(snapshot, agent, AGENT_CONFIG).payload
        for role, agent in present.binding.items()
    }
    return {
        "agents": {role: agent["command"] for role, agent in agents.items()},
        "agentSettings": next_move.settings_by_role(agents),
    }


# Where a command leaves a thread: whose turn is next, and what to type then.


class Stop(NamedTuple):
    """Where a thread stands when a command ends."""

    next: str | None
    """The role that takes the next step, or ``$END``; None: ended, or undecided."""

    advice: Advice


def read_stop(store: Store, text: str, *, default: str | None = None) -> Stop:
    """Return where the thread *text* stands now; *default* as for ``find_stop``."""
    head = resolve_head(store, text)
    return find_stop(store, read_snapshot(store, head.commit), default=default)


def find_stop(
    store: Store, snapshot: Snapshot, *, move: NextMove | None = None, default: str | None = None
) -> Stop:
    """Return where a thread stands at *snapshot*.

    *move* is its next move if that is known: a decision may cost a fork. *default* is the agent of
    unbound roles ($UWF_AGENT).
    """
    move = next_move.find_next_move(snapshot) if move is None else move
    thread = snapshot.record.thread
    status, running = find_work(store, thread, snapshot.record.status)
    # A drive reports its end while it still holds the thread.
    is_at_work = status == RUNNING and not (running and running.pid == os.getpid())
    if snapshot.record.status == "split" and not is_at_work:
        running_below = agent_runs.list_running(store, thread)
        is_at_work = any(each.pid != os.getpid() for each in running_below)
    if is_at_work:
        kill = "" if find_kill_request(store, thread) is None else "it is killed after this step; "
        wait = f"{kill}`uwf thread wait {thread}` waits until it stops"
        return Stop(move.role, Advice(wait, is_usual=True))
    return Stop(move.role, next_move.advise(store, snapshot, move, default=default))


# Tries at a node that is verified, as documents: for `thread show`, and for whose turn it is.


def view_try(store: Store, place: FlowPlace | None, present: ThreadState) -> dict[str, Any] | None:
    """Return which try the turn at *place* belongs to; None if nobody verifies its work.

    ``of`` is the number of tries, absent if unknown now. A higher number means that all are used
    up.
    """
    if place is None or place.node.verifier is None:
        return None
    number = present.begin_tries(str(place.at)).failures + 1
    if present.tried is not None and present.tried.at == str(place.at):
        number = present.tried.number
    view = {"number": number, "node": place.node.label, "at": str(place.at), "turn": place.role}
    with suppress(UwfError):
        view["of"] = find_work_retries(store.config, place) + 1
    return view


def view_tried(
    store: Store, snapshot: Snapshot, place: FlowPlace, present: ThreadState
) -> dict[str, Any]:
    """Return what the context of a turn at *place* has of its try; empty if it is not verified."""
    view = view_try(store, place, present)
    if view is None:
        return {}
    if place.is_verdict:
        given = fill_template(snapshot, present, place, place.node.fields.get("input"))
        verified = {"role": place.node.agent, "input": given}
        checked = _find_checked(snapshot, present)
        verified |= {"checked": checked} if checked else {}
        return {"try": {**view, "verifies": verified}}
    verdict = find_verdict(snapshot, present)
    if verdict is None:
        return {"try": view}
    meta = verdict.payload["meta"]
    fields = meta if isinstance(meta, dict) else {}
    view["rejected"] = {
        "role": verdict.payload["role"],
        "issues": list_issues(fields),
        "suggestion": find_suggestion(fields),
        "meta": meta,
        "content": get_text(snapshot, verdict.payload.get("content")),
        "hash": verdict.hash,
    }
    return {"try": view}


def _find_checked(snapshot: Snapshot, present: ThreadState) -> str:
    """Return what the checks of the work printed that is to be judged: the newest step."""
    work = snapshot.get_head_node()
    role = get_workflow(snapshot, present.workflow).roles.get(work.payload.get("role"))
    checks = () if role is None else get_role(snapshot, role).checks
    return find_outputs(get_text(snapshot, work.payload.get("stderr")), checks) if checks else ""
