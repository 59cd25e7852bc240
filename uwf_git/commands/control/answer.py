"""`uwf thread answer`: record a person's answer as a step, asked for at the terminal or given."""

import json
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.reply import AgentReply
from uwf_git.commands.caller import Caller
from uwf_git.commands.inspect.context import find_wait
from uwf_git.commands.remote.fast_forward import fast_forward_from_tracking
from uwf_git.commands.split.family import walk_descendants
from uwf_git.commands.step.record_turn import build_answer, record_at, wait_for_person
from uwf_git.commands.turn.branches import WrongStatus, check_ancestors, read_active
from uwf_git.commands.turn.choose_agent import Choice, NoAgent, build_agent, choose_agent, is_person
from uwf_git.commands.turn.limits import check_limits, read_spending
from uwf_git.commands.turn.next_move import PERSON, NextTurn, decide_next, find_turn_place
from uwf_git.commands.turn.turn import (
    ThreadResult,
    Turn,
    find_flow_problem,
    find_reply_problem,
    get_output_schema,
)
from uwf_git.engine.form import CheckAnswer, FormIO, fill_form, list_questions
from uwf_git.engine.turn_context import AgentContext, RoleView, Step
from uwf_git.errors import Refused, name_some
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node
from uwf_git.model.text import render_time
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import END, parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, HeadMoved
from uwf_git.store.threads.lock import ThreadBusy, check_not_stopped, lock_thread
from uwf_git.store.threads.snapshot import Snapshot, get_typed

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


def read_question(
    store: Store, caller: Caller, text: str, *, default: str | None = None
) -> PersonQuestion:
    """Return the question to a person, now or next, in the thread that *text* names.

    *default* is the agent of unbound roles, before the configured agent.
    """
    thread = read_active(store, text)[0].thread
    # If the thread is busy, the process that holds the lock takes over what a remote has.
    with suppress(ThreadBusy), lock_thread(store, thread, since_ms=caller.now_ms()):
        fast_forward_from_tracking(store, thread)
    caller.check_signing(store)
    return _find_question(store, read_active(store, thread)[1], default)


def answer_thread(
    store: Store, caller: Caller, question: PersonQuestion, answer: PersonAnswer
) -> ThreadResult:
    thread = question.thread
    _check_answer(question, answer)
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
                    _check_answer(now, answer)
                    return _record(store, caller, seen, question=now, answer=answer)
                wait_for_person(store, caller, seen, turn=NextTurn(now.role, now.at))
    raise HeadMoved(thread)


def _check_answer(question: PersonQuestion, answer: PersonAnswer) -> None:
    fields = {
        "meta": answer.meta,
        "content": answer.content,
        "state": dict(answer.state or {}),
        "usage": dict(answer.usage or {}),
    }
    problem = find_reply_problem(question.schema, fields)
    if problem is not None:
        raise AnswerRefused(question, problem)


def _find_question(store: Store, snapshot: Snapshot, default: str | None) -> PersonQuestion:
    """Return the question if it is a person's turn, or raise ``WrongStatus``."""
    present = snapshot.get_present()
    waiting = present.waiting
    status = snapshot.record.status
    is_put = _is_asked(snapshot)
    if not is_put and status != "ready":
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
    spending = read_spending(store, snapshot, present)
    check_limits(spending.thread, spending.present)
    agent = (
        _find_person(snapshot, present, role)
        if is_put
        else _choose_person(store, snapshot, present, role=role, default=default)
    )
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
        asking = [head.thread for head, branch in branches if _is_asked(branch)]
        if asking:
            problem = f"has split; its branch {name_some(asking)} waits for an answer"
            return WrongStatus(snapshot, problem, f"`uwf thread answer {asking[0]}` asks")
    if status == "paused":
        return WrongStatus(snapshot, "is paused", "`uwf thread resume {thread}` lets it go on")
    if status == "failed":
        hint = "`uwf thread retry {thread}` has its agent try again"
        return WrongStatus(snapshot, "has failed, and waits for no answer", hint)
    if waiting is not None and waiting.until is not None:
        until = render_time(waiting.until)
        problem = f"waits until {until} for the agent of {waiting.role}, and for no answer"
        return WrongStatus(snapshot, problem, "`uwf thread resume {thread}` lets it try now")
    hint = "see why with `uwf thread show {thread}`"
    return WrongStatus(snapshot, f"is {status}, and waits for no answer", hint)


def _is_asked(snapshot: Snapshot) -> bool:
    waiting = snapshot.get_present().waiting
    return snapshot.record.status == "waiting" and waiting is not None and waiting.until is None


def _record(
    store: Store,
    caller: Caller,
    seen: tuple[Head, Snapshot],
    *,
    question: PersonQuestion,
    answer: PersonAnswer,
) -> ThreadResult:
    snapshot = seen[1]
    turn = Turn(
        store,
        snapshot,
        snapshot.get_present(),
        snapshot.commit.oid,
        question.role,
        question.agent,
        environ=caller.environ,
        workdir="",
        place=find_turn_place(snapshot, question.at),
    )
    reply = AgentReply(
        answer.meta,
        answer.content,
        "object",
        raw=answer.raw,
        usage=None if answer.usage is None else dict(answer.usage),
        state=None if answer.state is None else dict(answer.state),
    )
    problem = find_flow_problem(turn, reply)
    if problem is not None:
        raise AnswerRefused(question, problem["message"])
    now = caller.now_ms()
    # Another machine, whose clock is ahead, may have recorded the wait.
    since = min(find_wait(store, snapshot).commit.time_s * 1000, now)
    from uwf_git.commands.step.turn_files import find_range  # noqa: PLC0415 (start-up time of the library)

    files = find_range(turn, None)
    new = build_answer(turn, reply, since_ms=since, now_ms=now, note=answer.note, files=files)
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


class FilledForm(NamedTuple):
    meta: Any
    content: str


def build_page(context: AgentContext) -> str:
    """Return the text that a person sees before the questions."""
    role = context.current_role
    number = f"step {context.depth + 1} of {context.workflow.name}, thread {context.thread_id}"
    parts = [f"\n===== Your turn as {role.name} ({number}) =====", role.description]
    parts += [role.system_prompt, f"----- The task -----\n{context.start.prompt}"]
    if context.steps:
        parts.append(_tell_step(context.steps[-1]))
    if context.hint is not None:
        parts.append(f"A hint for you: {context.hint}")
    if context.last_error is not None:
        parts.append(f"The last attempt failed: {context.last_error.message}")
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n\n"


def ask_person(asker: FormIO, role: RoleView, *, check: CheckAnswer, edit: Edit) -> FilledForm:
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
            return FilledForm(meta, content)


def _tell_step(step: Step) -> str:
    content = step.content.strip()
    if len(content) > _LONGEST_SHOWN:
        content = f"{content[:_LONGEST_SHOWN]}\n[… `uwf thread read` shows all of it]"
    meta = json.dumps(step.meta, ensure_ascii=False, indent=2)
    return f"----- The last step, by {step.role} -----\n{meta}\n\n{content}"


def _ask_text(asker: FormIO, before: str, edit: Edit) -> str:
    kept = "Enter and a dot: as before.\n" if before else ""
    asker.say(f"{_TEXT_QUESTION}{kept}")
    lines: list[str] = []
    while (line := asker.read_line("| ")) not in (None, "."):
        if line == ":e":
            edited = edit("\n".join(lines) or before)
            if edited is not None:
                return edited.strip("\n")
        else:
            lines.append(line or "")
    return "\n".join(lines).strip("\n") or before
