"""`uwf thread context`: the document that an agent gets for its turn, and the prompt."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Lock
from typing import Any

from uwf_git.commands.agent_run.runs import BegunTurn, read_begun_turn
from uwf_git.commands.family import count_steps_before
from uwf_git.commands.inspect.show import (
    get_text,
    view_branches,
    view_error,
    view_steps,
    view_tried,
)
from uwf_git.commands.split import JOINER
from uwf_git.commands.turn.branches import ThreadNotActive
from uwf_git.commands.turn.flow import (
    FlowPlace,
    count_own,
    fill_input,
    find_turn_place,
    read_state_at,
)
from uwf_git.commands.turn.next_move import decide_next
from uwf_git.commands.turn.turn import (
    InputFile,
    find_output_path,
    get_output_schema,
    read_input_files,
)
from uwf_git.engine.form import list_questions
from uwf_git.engine.moderator import LazyList
from uwf_git.engine.prompt import build_prompt
from uwf_git.engine.turn_context import parse_context
from uwf_git.errors import Refused
from uwf_git.model.builtin import ATTEMPT
from uwf_git.model.event_folds import describe_step
from uwf_git.model.event_rules import CONTROLS, STEPS, signal_of
from uwf_git.model.names import NodeHash, Oid
from uwf_git.model.text import CHECK, find_last_output, first_line
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import END, Role, Workflow
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.history import (
    Snapshot,
    get_role,
    get_typed,
    get_workflow,
    read_at,
    read_snapshot,
    walk_history,
)
from uwf_git.store.threads.local_files import RunDir, find_workdir, get_run_dir, has_runs
from uwf_git.store.threads.naming import resolve_head

# The question of a thread that waits for a person: its document, and its first line for lists.
#
# It has what an agent of the role would get, for a reader who has not seen the thread.


def view_waiting(store: Store, snapshot: Snapshot, present: ThreadState) -> dict[str, Any] | None:
    """Return the role that a thread waits for, since when, and until which limit's end; or None."""
    waiting = present.waiting
    if waiting is None:
        return None
    until = {} if waiting.until is None else {"until": waiting.until}
    wait = find_wait(store, snapshot)
    return {"role": waiting.role, "since": wait.commit.time_s * 1000, **until}


def find_wait(store: Store, snapshot: Snapshot) -> Snapshot:
    """Return the commit since which the turn waits; control events do not begin a wait."""
    history = walk_history(store, snapshot.commit.oid)
    return next((each for each in history if each.record.event not in CONTROLS), snapshot)


def view_question(store: Store, snapshot: Snapshot, present: ThreadState) -> dict[str, Any] | None:
    if present.waiting is None or present.waiting.until is not None:
        return None
    name = present.waiting.role
    view: dict[str, Any] = {"role": name}
    workflow = get_workflow(snapshot, present.workflow)
    if (node := workflow.roles.get(name)) is not None:
        role = get_role(snapshot, node)
        schema = get_output_schema(snapshot, workflow, name)
        view |= {
            "description": role.description,
            "systemPrompt": role.system_prompt,
            "extractPrompt": role.extract_prompt,
            "fields": list_questions(schema),
            "outputSchema": schema,
            **_view_given(store, snapshot, present, role),
        }
    newest: dict[str, Any] | None = None
    if snapshot.record.depth:
        # In one line; `thread show` has the whole step.
        step = snapshot.get_head_node().payload
        said = describe_step(step["meta"], get_text(snapshot, step.get("content")))
        newest = {"hash": snapshot.record.node, "role": step["role"], "said": said}
    return {
        **view,
        "task": snapshot.get_start().payload["prompt"],
        "lastStep": newest,
        "command": f"uwf thread answer {snapshot.record.thread}",
    }


def _view_given(
    store: Store, snapshot: Snapshot, present: ThreadState, role: Role
) -> dict[str, Any]:
    """Return what a person's turn is about, with the keys of a context; files without content."""
    place = find_turn_place(snapshot, present.waiting and present.waiting.at)
    workdir = find_workdir(store, snapshot.record.thread)
    files = read_input_files(snapshot, present, place, role, workdir=workdir)
    view: dict[str, Any] = {}
    if place is not None:
        # A patch may have taken away what fills it; the turn can be answered even so.
        view["input"] = place.inputs[0]
        with suppress(Refused):
            view["input"] = fill_input(snapshot, present, place)
            view |= view_tried(store, snapshot, place, present)
    if files:
        view["inputFiles"] = [{"path": each.path, "problem": each.problem} for each in files]
    return view


def tell_given(view: Mapping[str, Any]) -> str:
    """Return what the turn of a context, or of a question, is about, and the names of its files."""
    told = [_as_markdown(view.get("input"))]
    verified = view.get("try", {}).get("verifies", {})
    if about := _as_markdown(verified.get("input")):
        told.append(f"What the work of {verified['role']} was about:\n\n{about}")
    named = [
        f"`{each['path']}`" + (f" ({each['problem']})" if each.get("problem") else "")
        for each in view.get("inputFiles", ())
    ]
    told += [f"Files: {', '.join(named)}"] if named else []
    return "\n\n".join(filter(None, told))


def _as_markdown(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=2)}\n```"


def first_question_line(snapshot: Snapshot, present: ThreadState) -> str | None:
    if present.waiting is None or present.waiting.until is not None:
        return None
    node = get_workflow(snapshot, present.workflow).roles.get(present.waiting.role)
    if node is None:
        return ""
    role = get_role(snapshot, node)
    return first_line(role.description) or first_line(role.system_prompt)


# The files that a role names, as the context of its turn has them.

_NOT_KEPT = "is not kept: the thread does not tell what it held then"


def find_begun(
    store: Store, snapshot: Snapshot, role: str | None
) -> tuple[BegunTurn, RunDir] | None:
    thread = snapshot.record.thread
    if role is None or not has_runs(store, thread):
        return None
    run = get_run_dir(store, thread, snapshot.turn_start)
    begun = read_begun_turn(run)
    return (begun, run) if begun is not None and begun.role == role else None


def _view_output_file(
    store: Store, snapshot: Snapshot, present: ThreadState, place: FlowPlace | None, role: Role
) -> dict[str, Any]:
    """Return where the agent may leave its meta; a turn that has begun keeps its path."""
    if role.output_file is None:
        return {}
    begun = find_begun(store, snapshot, role.name)
    path = "" if begun is None else begun[1].read("output")
    return {"outputFile": path or find_output_path(snapshot, present, place, role)}


def _view_input_file(file: InputFile, *, is_past: bool) -> dict[str, Any]:
    """Return the file as it is now; of a past turn only its name."""
    problem = _NOT_KEPT if is_past else file.problem
    told = {"content": file.content} if problem is None else {"problem": problem}
    return {"path": file.path, **told}


# `uwf thread context`: the document that an agent gets for its turn, and the prompt built from
# it.
#
# Source: seed 003's AgentContext.


def _not_its_turn(thread: str, problem: str, hint: str) -> Refused:
    return Refused(f"thread {thread} {problem}", code="not-its-turn", hint=hint, thread=thread)


_LONGEST_OUTPUT = 8_000


def load_thread_context(repo: str, thread: str, *, role: str | None = None) -> dict[str, Any]:
    """Return a turn's context, as ``get_context``, from the store at *repo*; the kit calls this."""
    return get_context(open_store(repo), thread, role=role)


def get_context(store: Store, text: str, *, role: str | None = None) -> dict[str, Any]:
    """Return the context of a turn of *role* (None: the next role); its steps are a lazy list."""
    head = resolve_head(store, text)
    snapshot = read_snapshot(store, head.commit)
    if head.archived:
        raise ThreadNotActive(snapshot)
    # What steers the thread while an agent is at work comes after its turn.
    begun = find_begun(store, snapshot, role)
    return build_context(store, snapshot, role, at=None if begun is None else begun[0].at)


def get_past_context(store: Store, taken: Snapshot) -> dict[str, Any]:
    """Return the context that the agent of a step or attempt, *taken*, was given."""
    record = taken.record
    if record.event not in {"step", "answer", "attempt"}:
        raise Refused(
            f"commit {taken.commit.oid} of thread {record.thread} is a {record.event}, and no "
            "agent was given anything",
            code="no-turn-there",
            hint=f"name a step by its number or its hash: `uwf thread show {record.thread} --full`",
            thread=record.thread,
            commit=taken.commit.oid,
            event=record.event,
        )
    attempt = taken.get_present().last_attempt if record.event == "attempt" else None
    node = taken.get_node(attempt or record.node)
    started_ms: int = node.payload.get("startedAt", node.timestamp)
    before = read_snapshot(store, taken.commit.parents[0])
    # A patch that came while the agent worked was not in its context.
    while before.record.event in CONTROLS and _find_time_ms(before) > started_ms:
        before = read_snapshot(store, before.commit.parents[0])
    return build_context(store, before, record.role, at=record.at, is_past=True)


def _find_time_ms(snapshot: Snapshot) -> int:
    # The time of a commit is cut to seconds.
    signal = signal_of(snapshot.record)
    return snapshot.commit.time_s * 1000 if signal is None else snapshot.get_node(signal).timestamp


def build_context(
    store: Store,
    snapshot: Snapshot,
    role: str | None,
    *,
    at: str | None = None,
    is_past: bool = False,
) -> dict[str, Any]:
    """Return the context of a turn of *role* (None: the next role) at the commit of *snapshot*.

    *at* is its place in a flow; None: where the thread goes next, if *role* acts there. The files
    that a turn was given are not known if the turn *is_past*.
    """
    present = snapshot.get_present()
    workflow = get_workflow(snapshot, present.workflow)
    if role is None or (at is None and workflow.flow is not None):
        role, at = _find_turn(snapshot, present, workflow, role)
    thread = snapshot.record.thread
    if role == END:
        raise _not_its_turn(thread, "has no turn left", f"`uwf thread step {thread}` ends it")
    if role not in workflow.roles:
        raise _not_its_turn(
            thread, f"has no role {role}", f"its roles are {', '.join(workflow.roles)}"
        )
    place = find_turn_place(snapshot, at)
    in_flow = {} if place is None else _view_place(store, snapshot, present, place)
    present = present.begin_tries(at)
    asked = get_role(snapshot, workflow.roles[role])
    workdir = find_workdir(store, thread)
    files = read_input_files(snapshot, present, place, asked, workdir=None if is_past else workdir)
    views = [_view_input_file(each, is_past=is_past) for each in files]
    return {
        "thread": thread,
        "workflow": {
            "hash": workflow.hash,
            "name": workflow.name,
            "description": workflow.description,
        },
        "role": _view_role(snapshot, workflow, role)
        | _view_output_file(store, snapshot, present, place, asked),
        "start": _view_start(snapshot),
        "steps": _view_steps(store, snapshot, role, present.attempts),
        "head": snapshot.record.node,
        "depth": snapshot.record.depth,
        "visit": count_own(snapshot, present).get(role, 0) + 1,
        "attempt": present.attempts + 1,
        "lastError": _last_error(snapshot, present, workflow.roles[role]),
        "state": dict(present.state),
        "hint": _find_hint(store, snapshot, present),
        "workdir": workdir,
        **in_flow,
        **({"inputFiles": views} if views else {}),
    }


def _view_steps(
    store: Store, snapshot: Snapshot, role: str, tries: int
) -> LazyList[dict[str, Any]]:
    """Return the steps; ``session`` only where the conversation is the thread's as it is now.

    Those of the thread that split or was forked go on there, those from before a poke hold the
    turn that was taken back, and what a failed try of *role* spent in one is in no step; *tries*
    have failed of the turn that is under way.
    """
    newer = _walk_steps(snapshot, role, tries)
    taken: dict[NodeHash, tuple[Oid, bool]] = {}
    lock = Lock()

    def view(step: dict[str, Any]) -> dict[str, Any]:
        is_join = step["agent"] == JOINER
        if not is_join and "session" not in step:
            return step
        with lock:
            while step["hash"] not in taken and (found := next(newer, None)):
                # After a poke an equal step has the same node; the newest counts.
                taken.setdefault(*found)
        commit, is_own = taken.get(step["hash"], (None, False))
        if not is_own:
            step.pop("session", None)
        if is_join and commit is not None:
            step["branches"] = list(view_branches(read_at(snapshot.objects, commit)))
        return step

    return view_steps(snapshot, count_steps_before(store, snapshot)).mapped(view)


def _walk_steps(at: Snapshot, role: str, tries: int) -> Iterator[tuple[NodeHash, tuple[Oid, bool]]]:
    """Yield each step, its commit, and whether its conversation is the thread's as it is now."""
    is_own = True
    while True:
        event, by = at.record.event, at.record.role
        is_own = is_own and event not in {"poke", "fork", "start"}
        if event in STEPS:
            yield at.record.node, (at.commit.oid, is_own and (tries >= 0 or by != role))
        tries -= (event, by) == ("attempt", role)
        if not at.commit.parents:
            return
        at = read_at(at.objects, at.commit.parents[0])


def _find_hint(store: Store, snapshot: Snapshot, present: ThreadState) -> str | None:
    """Return what a person told the agents; where work is verified, until a verdict accepts it."""
    if present.tried is None or present.hint:
        return present.hint or None
    history = walk_history(store, snapshot.commit.oid, through_forks=True)
    states = (each.get_present() for each in history)
    return next(state.hint for state in states if state.hint or state.tried is None) or None


def _view_start(snapshot: Snapshot) -> dict[str, Any]:
    start, is_branch = snapshot.get_start(), snapshot.get_trunk() is not None
    return {
        "hash": start.hash,
        "prompt": start.payload["prompt"],
        "timestamp": start.timestamp,
        "depth": snapshot.get_nesting(),
        "parentThread": snapshot.record.parent_thread,
        # A fork of a branch has its StartNode, and is no branch.
        **({"entry": start.payload["entry"]} if is_branch and "entry" in start.payload else {}),
    }


def _find_turn(
    snapshot: Snapshot, present: ThreadState, workflow: Workflow, role: str | None
) -> tuple[str, str | None]:
    """Return whose turn it is, and where; with *role* only where, if it is that role's turn."""
    turn = decide_next(snapshot, present, workflow)
    if role is None and turn.splits:
        thread, problem = snapshot.record.thread, f"goes on in branches: {turn.role}"
        raise _not_its_turn(thread, problem, f"`uwf thread show {thread}` lists them")
    is_its = role in {None, turn.role} and not turn.splits
    return role or turn.role, turn.at if is_its else None


def _view_place(
    store: Store, snapshot: Snapshot, present: ThreadState, place: FlowPlace
) -> dict[str, Any]:
    """Return a flow's node, input and state at a turn; ``iteration`` is of the innermost loop."""
    state = read_state_at(snapshot, present, place)
    return {
        "state": state,
        "input": fill_input(snapshot, present, place),
        "node": {"label": place.node.label, "at": str(place.at)},
        "iteration": state["iteration"],
        **view_tried(store, snapshot, place, present),
    }


def _view_role(snapshot: Snapshot, workflow: Workflow, name: str) -> dict[str, Any]:
    role = get_role(snapshot, workflow.roles[name])
    asked = {"extractPrompt": role.extract_prompt, "checks": list(role.checks) or None}
    return {
        "name": name,
        "description": role.description,
        "systemPrompt": role.system_prompt,
        **{key: value for key, value in asked.items() if value is not None},
        "outputSchema": get_output_schema(snapshot, workflow, name),
    }


def _last_error(snapshot: Snapshot, present: ThreadState, role: NodeHash) -> dict[str, Any] | None:
    """Return the error of the newest failed attempt, and what the check printed that refused it."""
    error = view_error(snapshot, present)
    if error is None or error["kind"] != CHECK or present.last_attempt is None:
        return error
    attempt = get_typed(snapshot, present.last_attempt, ATTEMPT)
    log = get_text(snapshot, attempt.payload.get("stderr"))
    output = find_last_output(log, get_role(snapshot, role).checks)
    return error | ({"output": output[-_LONGEST_OUTPUT:]} if output.strip() else {})


def render_prompt(context: dict[str, Any]) -> str:
    return build_prompt(parse_context(context))
