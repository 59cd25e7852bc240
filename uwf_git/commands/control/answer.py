"""Steer a thread by a commit: resume, retry and patch add no step, an answer is a step."""

import json
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.command_line import AgentReply, Form
from uwf_git.commands.agent_run.runs import PlayedElsewhere, PlayedHere, stop_agents
from uwf_git.commands.caller import Caller
from uwf_git.commands.family import check_ancestors, walk_descendants
from uwf_git.commands.inspect.context import find_wait, tell_given
from uwf_git.commands.inspect.show import find_stop
from uwf_git.commands.step.ending import (
    end_by_kill,
    fast_forward_from_tracking,
    find_range,
    person_turn,
)
from uwf_git.commands.step.record_turn import build_answer, record_at, wait_for_person
from uwf_git.commands.step.step_thread import sweep_branches
from uwf_git.commands.turn.branches import (
    ThreadNotActive,
    WrongStatus,
    read_active,
    resolve_or_begin,
)
from uwf_git.commands.turn.choose_agent import Choice, NoAgent, build_agent, choose_agent, is_person
from uwf_git.commands.turn.flow import check_limits, read_spending
from uwf_git.commands.turn.next_move import PERSON, NextTurn, decide_next
from uwf_git.commands.turn.turn import (
    STORED,
    ThreadResult,
    build_thread_result,
    find_flow_problem,
    find_reply_problem,
    get_output_schema,
    list_undeclared,
    read_thread_result,
)
from uwf_git.engine.flow_state import find_patch_problem, find_state_problem
from uwf_git.engine.form import CheckAnswer, FormIO, fill_form, list_questions
from uwf_git.engine.prompt import tell_branches
from uwf_git.engine.turn_context import AgentContext, RoleView, Step
from uwf_git.errors import BadUsage, Conflict, Refused, name_some
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.event_folds import Cause, merge_patch
from uwf_git.model.event_rules import event_of
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node
from uwf_git.model.text import render_time
from uwf_git.model.thread import ThreadState, build_signal, keep_reason
from uwf_git.model.workflow import END, parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, HeadMoved, get_head
from uwf_git.store.threads.history import (
    NewCommit,
    Snapshot,
    build_next,
    get_typed,
    read_snapshot,
    read_standing,
)
from uwf_git.store.threads.local_files import (
    ThreadBusy,
    check_not_stopped,
    lock_briefly,
    lock_thread,
)

# Steer a thread: record a commit that changes how it goes on and adds no step.
#
# No lock is taken. The ref moves by compare-and-swap; a step that is under way is recorded on
# top. Source: seed 004, the runtime control protocol.

RESUME = "`uwf thread resume {thread}` lets it go on"

MOST_TRIES = 1000
"""The most tries to move a head that other processes move as well; each time a process succeeds."""

BuildCommit = Callable[[Snapshot], NewCommit]


def steer_thread(store: Store, caller: Caller, text: str, build: BuildCommit) -> ThreadResult:
    """Record what *build* returns on top of the thread that *text* names."""
    thread = read_active(store, text)[0].thread
    _catch_up(store, thread)
    return record_built(store, caller, thread, build)


def _catch_up(store: Store, thread: ThreadId) -> None:
    if store.has_remotes:
        # If the thread is busy, the process that holds the lock takes over what a remote has.
        with suppress(ThreadBusy), lock_briefly(store, thread):
            fast_forward_from_tracking(store, thread)


def record_built(
    store: Store, caller: Caller, thread: ThreadId, build: BuildCommit
) -> ThreadResult:
    """Record what *build* returns on top of *thread*; build again if the head moved meanwhile."""
    for _ in range(MOST_TRIES):
        seen = read_active(store, thread)
        new = build(seen[1])
        with suppress(HeadMoved):
            return record_at(store, caller, seen, new)
    raise HeadMoved(thread)


def build_signalled(
    snapshot: Snapshot, cause: Cause, *, signal: Node, nodes: tuple[Node, ...] = ()
) -> NewCommit:
    event, kept = event_of(signal.payload["action"]), snapshot.as_kept(signal)
    before = read_standing(snapshot)
    return build_next(before, event, cause._replace(node=kept), nodes=(kept, *nodes))


# `uwf thread resume`: end a pause, or the wait for the end of an agent's limit. Nothing runs.
#
# The status is the status before the pause. Source: seeds 003 and 004 (resume).


def _do_other(store: Store, snapshot: Snapshot, problem: str) -> WrongStatus:
    # Braces of a role's name are no fields of the hint.
    told = find_stop(store, snapshot).advice.text.replace("{", "{{").replace("}", "}}")
    return WrongStatus(snapshot, problem, told)


def resume_thread(store: Store, caller: Caller, text: str, *, reason: str = "") -> ThreadResult:
    """Resume a paused thread; a thread that waits for the end of a limit may try at once."""

    def build(snapshot: Snapshot) -> NewCommit:
        before = read_standing(snapshot)
        status, waiting = before.record.status, before.state.waiting
        is_limited = status == "waiting" and waiting is not None and waiting.until is not None
        if status != "paused" and not is_limited:
            raise _do_other(store, snapshot, f"is {status}, not paused")
        signal = build_signal("resume", timestamp=caller.now_ms(), reason=reason)
        return build_signalled(snapshot, Cause(), signal=signal)

    return steer_thread(store, caller, text, build)


# `uwf thread retry`: allow a failed thread to try again, with all its retries. Nothing runs.
#
# The failed attempts stay in the history; the next prompt has the last error.

_DRIVE = "`uwf thread run {thread}` drives its branches"


def retry_thread(store: Store, caller: Caller, text: str, *, hint: str = "") -> ThreadResult:
    """Make a failed thread, or a split thread's failed branches, ready again; agents get *hint*."""

    def build(snapshot: Snapshot) -> NewCommit:
        status = snapshot.record.status
        if status != "failed":
            raise _do_other(store, snapshot, f"is {status}, and has not failed")
        signal = build_signal("retry", timestamp=caller.now_ms(), reason=hint)
        return build_signalled(snapshot, Cause(), signal=signal)

    thread = read_active(store, text)[0].thread
    _catch_up(store, thread)
    tip = read_active(store, thread)[1]
    if tip.record.status != "split":
        return steer_thread(store, caller, thread, build)
    for head, _branch in walk_descendants(store, tip):
        _catch_up(store, head.thread)
    failed = [
        head.thread
        for head, branch in walk_descendants(store, tip)
        if branch.record.status == "failed"
    ]
    if not failed:
        raise WrongStatus(tip, "has split, and none of its branches has failed", _DRIVE)
    for branch_thread in failed:
        # It may go on by itself meanwhile.
        with suppress(WrongStatus, ThreadNotActive):
            steer_thread(store, caller, branch_thread, build)
    said = f"{len(failed)} branch{'es' if len(failed) > 1 else ''} may try again"
    return build_thread_result(tip.record, said=said, commit=tip.commit.oid)


# `uwf thread patch`: change a thread's state by a JSON merge patch.
#
# An agent that is at work does not see the change; its own patch is applied afterwards. Source:
# seed 004 (patchState); RFC 7396, JSON merge patch.


def _bad_patch(problem: str) -> BadUsage:
    return BadUsage(
        f"the patch {problem}",
        code="bad-patch",
        hint='a JSON merge patch is an object: \'{"done": true, "draft": null}\' sets done and '
        "removes draft",
    )


def patch_thread(
    store: Store, caller: Caller, text: str, patch: Any, *, reason: str = ""
) -> ThreadResult:
    """Apply the JSON merge patch *patch* to a thread's state."""
    if not isinstance(patch, Mapping):
        raise _bad_patch("is not an object")
    if not patch:
        raise _bad_patch("is empty")

    def build(snapshot: Snapshot) -> NewCommit:
        if parse_workflow(snapshot.get_node(snapshot.record.workflow)).flow is not None:
            state = merge_patch(dict(snapshot.get_present().state), dict(patch))
            if (problem := find_patch_problem(patch) or find_state_problem(state)) is not None:
                raise _bad_patch(f"cannot be applied: {problem}")
        signal = build_signal("patch", timestamp=caller.now_ms(), reason=reason, patch=patch)
        return build_signalled(snapshot, Cause(), signal=signal)

    return steer_thread(store, caller, text, build)


# Stop a thread: pause it, before its next step or at once, or end it; agents are stopped.
#
# A pause is committed before an agent is stopped, so nothing starts in between; the stopped
# attempt is recorded after it. The pause is a commit of the thread alone: its branches look at
# the thread before each step, and --now stops their agents too. Source: seeds 003 and 004 (pause,
# interrupt).
#
# While a thread is killed no step can begin. What a stopped agent printed is recorded first, and
# so is what the agent of a dead engine has finished. An agent may kill its own thread. The
# branches end after the thread. After a crash in between, another kill of the thread ends the
# branches, or the next step of any of them.


def pause_thread(
    store: Store, caller: Caller, text: str, *, reason: str = "", now: bool = False
) -> ThreadResult:
    """Pause a thread after the step that is under way, or *now*.

    *now* stops a running agent, also of a paused thread; its output is kept as an attempt that does
    not count against its retries.
    """
    reason = keep_reason(reason)
    thread = read_active(store, text)[0].thread
    paused_before: WrongStatus | None = None
    try:
        steer_thread(store, caller, thread, lambda at: _build(caller, at, reason))
    except WrongStatus as error:
        paused_before = error
    try:
        stopped = now and _stop_all(store, thread, reason=reason or "the thread was paused")
    except Conflict as error:
        error.message += f"; thread {thread} is paused all the same"
        error.args = (error.message,)
        raise
    if paused_before is not None and not stopped:
        raise paused_before
    # The stopped attempt may have been recorded after the pause.
    return read_thread_result(read_snapshot(store, get_head(store, thread).commit))


def _stop_all(store: Store, thread: ThreadId, *, reason: str) -> bool:
    """Stop the agents of *thread* and of its branches; return whether there were any."""
    tip = read_snapshot(store, get_head(store, thread).commit)
    threads = [thread, *(head.thread for head, _ in walk_descendants(store, tip))]
    stopped = False
    elsewhere: PlayedElsewhere | None = None
    for each in threads:
        try:
            stopped |= stop_agents(store, each, reason=reason)
        except PlayedHere:
            pass  # A Python function goes on; the pause counts when it returns.
        except PlayedElsewhere as error:
            elsewhere = error
    if elsewhere is not None:
        raise elsewhere
    return stopped


def _build(caller: Caller, snapshot: Snapshot, reason: str) -> NewCommit:
    if snapshot.record.status == "paused":
        raise WrongStatus(snapshot, "is paused already", RESUME)
    signal = build_signal("pause", timestamp=caller.now_ms(), reason=reason)
    return build_signalled(snapshot, Cause(), signal=signal)


def kill_thread(store: Store, caller: Caller, text: str, *, reason: str = "") -> ThreadResult:
    """End a thread and archive it, then its branches; stop their agents first."""
    reason = keep_reason(reason)
    thread, commit, _archived = resolve_or_begin(store, text)
    tip = read_snapshot(store, commit)
    if tip.record.status == "killed" and sweep_branches(store, caller, tip, reason=tip.body):
        return read_thread_result(tip)
    # A Python function goes on; its step ends the thread when it returns.
    with suppress(PlayedHere):
        end_by_kill(store, caller, read_active(store, thread)[0].thread, reason=reason)
        tip = read_snapshot(store, get_head(store, thread).commit)
        sweep_branches(store, caller, tip, reason=reason)
    return read_thread_result(tip)


# `uwf thread answer`: record a person's answer as a step. Nothing runs.
#
# An answer is recorded only if the same question is still open and the answer fits the role.
# Source: seed 002 (waiting_human).

_MOST_TRIES = 20


class AnswerRefused(Refused):
    code = "answer-refused"

    def __init__(self, question: "PersonQuestion", problem: str) -> None:
        super().__init__(
            f"this is no answer of {question.role}: {problem}",
            hint=f"nothing was recorded; it wants {question.wants}",
            thread=question.thread,
            role=question.role,
            problem=problem,
        )


class PersonQuestion(NamedTuple):
    thread: ThreadId
    head: NodeHash
    """The newest step; the same role may be asked again after the next step."""

    role: str
    schema: Any

    agent: Node

    is_put: bool = True
    """The thread waits for the answer; False: it is ready, and its next step would wait."""

    at: str | None = None
    """The place of a flow where the person answers."""

    @property
    def wants(self) -> str:
        lines = (line.strip().removeprefix("- ") for line in list_questions(self.schema))
        return "; ".join(line.rstrip(".") for line in lines)


class PersonAnswer(NamedTuple):
    meta: Any
    content: str = ""
    state: Mapping[str, Any] | None = None
    """A JSON merge patch of the thread's state."""

    usage: Mapping[str, Any] | None = None
    """What the answer cost, if known."""

    raw: bytes | None = None
    """The whole answer, if it was not UTF-8."""

    note: str = ""
    form: Form = "object"


def read_question(
    store: Store, caller: Caller, text: str, *, default: str | None = None
) -> PersonQuestion:
    """Return the question to a person, now or next, in the thread that *text* names.

    *default* is the agent of unbound roles, before the configured agent.
    """
    thread = read_active(store, text)[0].thread
    _catch_up(store, thread)
    caller.check_signing(store)
    return _find_question(store, read_active(store, thread)[1], default)


def answer_thread(
    store: Store, caller: Caller, question: PersonQuestion, answer: PersonAnswer
) -> ThreadResult:
    thread = question.thread
    reply = AgentReply(
        answer.meta,
        answer.content,
        answer.form,
        raw=answer.raw,
        usage=None if answer.usage is None else dict(answer.usage),
        state=None if answer.state is None else dict(answer.state),
    )
    _check_reply(question, reply)
    with lock_thread(store, thread, since_ms=caller.now_ms()) as lock:
        check_not_stopped(store, thread)
        lock.say(question.role, PERSON)
        fast_forward_from_tracking(store, thread)
        for _ in range(_MOST_TRIES):
            seen = read_active(store, thread)
            now = _find_question(store, seen[1], question.agent.payload["command"])
            if (now.head, now.role, now.at) != (question.head, question.role, question.at):
                raise HeadMoved(question.thread)
            # Steering takes no lock; if it moved the head, read everything again.
            with suppress(HeadMoved):
                if now.is_put:
                    _check_reply(now, reply)
                    return _record(store, caller, seen, now, reply=reply, note=answer.note)
                wait_for_person(store, caller, seen, turn=NextTurn(now.role, now.at))
    raise HeadMoved(thread)


def _check_reply(question: PersonQuestion, reply: AgentReply) -> None:
    if reply.form == "bare" and (beside := list_undeclared(question.schema, reply.meta)):
        told = f"{name_some(beside)} among its keys, which the role does not declare"
        form = '{"meta": {…}, "content": "…"}, with no other keys'
        raise AnswerRefused(question, f"{told}; write {form}")
    problem = find_reply_problem(question.schema, {name: getattr(reply, name) for name in STORED})
    if problem is not None:
        raise AnswerRefused(question, problem)


def _find_question(store: Store, snapshot: Snapshot, default: str | None) -> PersonQuestion:
    """Return the question if it is a person's turn, or raise ``WrongStatus``."""
    present = snapshot.get_present()
    waiting = present.waiting
    is_put = _is_asked(snapshot)
    if not is_put and snapshot.record.status != "ready":
        raise _wrong_status(store, snapshot, present)
    check_ancestors(store, snapshot)
    workflow = parse_workflow(snapshot.get_node(present.workflow))
    if waiting is not None and is_put:
        role, at = waiting.role, waiting.at
    else:
        turn = decide_next(snapshot, present, workflow)
        if turn.splits:
            problem = f"waits for no person: {turn.role}, which comes next, goes on in branches"
            raise WrongStatus(snapshot, problem, "`uwf thread step {thread}` begins them")
        role, at = turn.role, turn.at
    if role == END:
        hint = "`uwf thread step {thread}` ends it"
        raise WrongStatus(snapshot, "is at its end: no role is next", hint)
    if role not in workflow.roles:
        problem = f"waits for {role}, which its workflow no longer has"
        hint = "`uwf thread amend {thread}` gives it a workflow with that role"
        raise WrongStatus(snapshot, problem, hint)
    check_limits(*read_spending(store, snapshot, present))
    if is_put:
        agent = _find_person(snapshot, present, role)
    else:
        agent = _choose_person(store, snapshot, present, role=role, default=default)
    schema = get_output_schema(snapshot, workflow, role)
    thread, head = snapshot.record.thread, snapshot.record.node
    return PersonQuestion(thread, head, role, schema, agent, is_put, at)


def _find_person(snapshot: Snapshot, present: ThreadState, role: str) -> Node:
    """Return the AgentConfig of the person; `step --agent human` may have named one ad hoc."""
    if role in present.binding:
        bound = get_typed(snapshot, present.binding[role], AGENT_CONFIG)
        if is_person(bound):
            return bound
    return build_agent({"command": PERSON}, timestamp=snapshot.commit.time_s * 1000)


def _choose_person(
    store: Store, snapshot: Snapshot, present: ThreadState, *, role: str, default: str | None
) -> Node:
    try:
        # Nothing runs, so no trust is needed.
        choice = Choice(default=default, trust=True)
        agent = choose_agent(store, snapshot, present, role=role, choice=choice)
    except NoAgent:
        problem = f"waits for no person: no agent is bound to {role}, whose turn it is"
        hint = f"`uwf thread step {{thread}} --agent {_as_word(role)}` asks a person"
        raise WrongStatus(snapshot, problem, hint) from None
    if not is_person(agent):
        problem = f"waits for no person: it is the turn of {role}, which an agent plays"
        hint = (
            "`uwf thread step {thread}` lets it; to play it yourself: "
            f"`uwf thread amend {{thread}} --agent {_as_word(role)}`"
        )
        raise WrongStatus(snapshot, problem, hint)
    return agent


def _as_word(role: str) -> str:
    """Return ``role=human`` quoted for a shell and for ``str.format``."""
    return shlex.quote(f"{role}={PERSON}").replace("{", "{{").replace("}", "}}")


def _wrong_status(store: Store, snapshot: Snapshot, present: ThreadState) -> WrongStatus:
    status, waiting = snapshot.record.status, present.waiting
    if status == "split":
        branches = walk_descendants(store, snapshot)
        if asking := [head.thread for head, branch in branches if _is_asked(branch)]:
            problem = f"has split; its branch {name_some(asking)} waits for an answer"
            return WrongStatus(snapshot, problem, f"`uwf thread answer {asking[0]}` asks")
    stands = "has failed" if status == "failed" else f"is {status}"
    problem = f"{stands}, and waits for no answer"
    if status == "waiting" and waiting is not None and waiting.until is not None:
        until = render_time(waiting.until)
        problem = f"waits until {until} for the agent of {waiting.role}, and for no answer"
    return _do_other(store, snapshot, problem)


def _is_asked(snapshot: Snapshot) -> bool:
    waiting = snapshot.get_present().waiting
    return snapshot.record.status == "waiting" and waiting is not None and waiting.until is None


def _record(
    store: Store,
    caller: Caller,
    seen: tuple[Head, Snapshot],
    question: PersonQuestion,
    *,
    reply: AgentReply,
    note: str,
) -> ThreadResult:
    snapshot = seen[1]
    answered, after = NextTurn(question.role, question.at), snapshot.commit.oid
    turn = person_turn(store, caller, snapshot, answered, question.agent, after)
    if (problem := find_flow_problem(turn, reply)) is not None:
        raise AnswerRefused(question, problem["message"])
    now = caller.now_ms()
    # Another machine, whose clock is ahead, may have recorded the wait.
    since = min(find_wait(store, snapshot).commit.time_s * 1000, now)
    files = find_range(turn, None)
    new = build_answer(turn, reply, since_ms=since, now_ms=now, note=note, files=files)
    return record_at(store, caller, seen, new)


# Ask a person to play a role at the terminal: the prompt, then question by question.
#
# A person gets the same prompt as an agent and is held to the same schema.

_LONGEST_SHOWN = 20_000

_TEXT_QUESTION = """\
Your text. It ends at a line that is only a dot, or at Ctrl-D;
:e opens an editor.
"""

Edit = Callable[[str], str | None]
"""Opens a text in an editor; returns None if that failed."""


def build_page(context: AgentContext) -> str:
    """Return the text that a person sees before the questions."""
    role = context.current_role
    number = f"step {context.depth + 1} of {context.workflow.name}, thread {context.thread_id}"
    parts = [f"\n===== Your turn as {role.name} ({number}) =====", role.description]
    parts += [role.system_prompt, f"----- The task -----\n{context.start.prompt}"]
    if given := _tell_turn(context):
        parts.append(f"----- What this turn is about -----\n{given}")
    if context.steps:
        parts.append(_tell_step(context.steps[-1]))
    if context.hint is not None:
        parts.append(f"A hint for you: {context.hint}")
    if context.last_error is not None:
        parts.append(f"The last attempt failed: {context.last_error.message}")
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n\n"


def _tell_turn(context: AgentContext) -> str:
    tried, files = context.tried, context.input_files
    work = {} if tried is None else {"role": tried.verifies, "input": tried.work_input}
    named = [{"path": each.path, "problem": each.problem} for each in files]
    return tell_given({"input": context.input, "try": {"verifies": work}, "inputFiles": named})


def ask_person(asker: FormIO, role: RoleView, *, check: CheckAnswer, edit: Edit) -> PersonAnswer:
    meta, content = None, ""
    while True:
        asker.say(f"----- Your answer as {role.name} -----\n")
        meta = fill_form(asker, role.output_schema, check=check, before=meta)
        content = _ask_text(asker, content, edit)
        asker.say(f"\n{json.dumps(meta, ensure_ascii=False, indent=2)}\n")
        word = "?"
        while word not in ("", "y", "yes", "n", "no"):
            line = asker.read_line("Hand this in? [Y/n] ")
            word = "n" if line is None else line.strip().lower()
        if word not in ("n", "no"):
            return PersonAnswer(meta, content)


def cut_shown(text: str, most: int) -> str:
    """Return *text*, or its first *most* characters and where the rest can be read."""
    return text if len(text) <= most else f"{text[:most]}\n[… `uwf thread read` shows all of it]"


def _tell_step(step: Step) -> str:
    content = cut_shown((step.content + tell_branches(step)).strip(), _LONGEST_SHOWN)
    meta = json.dumps(step.meta, ensure_ascii=False, indent=2)
    return f"----- The last step, by {step.role} -----\n{meta}\n\n{content}"


def _ask_text(asker: FormIO, before: str, edit: Edit) -> str:
    asker.say(_TEXT_QUESTION + ("Enter and a dot: as before.\n" if before else ""))
    lines: list[str] = []
    while (line := asker.read_line("| ")) not in (None, "."):
        if line == ":e":
            if (edited := edit("\n".join(lines) or before)) is not None:
                return edited.strip("\n")
        else:
            lines.append(line or "")
    return "\n".join(lines).strip("\n") or before
