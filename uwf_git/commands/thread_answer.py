"""`uwf thread answer`: a person plays the role that a thread waits for.

Owns: whose answer may be recorded, and what it leaves.
Knows nothing of: how it was asked for. Nothing runs by it.
Always true: an answer is recorded only after the very question that it was given to; one that does
not fit the role leaves nothing. Source: seed 002 (waiting_human); DESIGN 4, the move Wait.
"""

import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.reply import AgentReply
from uwf_git.commands.caller import Caller
from uwf_git.commands.check_limits import check_limits
from uwf_git.commands.check_meta import find_problem, get_output_schema
from uwf_git.commands.choose_agent import (
    PERSON,
    Choice,
    NoAgent,
    build_agent,
    choose_agent,
    is_person,
)
from uwf_git.commands.decide import decide_next
from uwf_git.commands.question import find_since
from uwf_git.commands.record_turn import step_transition
from uwf_git.commands.stepped import Stepped, tell_stepped
from uwf_git.commands.take_over import take_over_tracked
from uwf_git.commands.thread_errors import WrongStatus, read_active
from uwf_git.commands.turn import Played, Turn
from uwf_git.commands.typed_node import get_typed
from uwf_git.commands.wait_for_person import wait_for_person
from uwf_git.engine.form import list_questions
from uwf_git.errors import Refused
from uwf_git.model.builtin import AGENT_CONFIG, STEP
from uwf_git.model.canonical import NotCanonical, canonical
from uwf_git.model.node import Node, build_node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import Present
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.time_text import render_time
from uwf_git.model.transition import END
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.heads import Head, HeadMoved, advance_head
from uwf_git.store.record import Transition, record_next
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import ThreadBusy, check_not_stopped, lock_thread

_MOST_TRIES = 20


class AnswerRefused(Refused):
    """The answer is not what the role has to hand in."""

    code = "answer-refused"

    def __init__(self, question: "Question", problem: str) -> None:
        super().__init__(
            f"this is no answer of {question.role}: {problem}",
            hint=f"nothing was recorded; it wants {question.wants}",
            thread=question.thread,
            role=question.role,
            problem=problem,
        )


class Question(NamedTuple):
    """What is asked of a person, and where in the thread."""

    thread: ThreadId
    head: NodeHash
    """The newest step: the same role may be asked again after the next one."""

    role: str
    schema: Any
    """The JSON Schema of the meta."""

    agent: Node
    """The AgentConfig node of the person."""

    is_put: bool = True
    """Whether the thread waits already; otherwise it is ready, and it would at its next step."""

    @property
    def wants(self) -> str:
        """What has to be handed in, in one line."""
        lines = (line.strip().removeprefix("- ") for line in list_questions(self.schema))
        return "; ".join(line.rstrip(".") for line in lines)


class Answer(NamedTuple):
    """What a person hands in."""

    meta: Any
    content: str = ""
    state: Mapping[str, Any] | None = None
    """A JSON merge patch of the thread's state."""

    usage: Mapping[str, Any] | None = None
    """What it cost, if somebody counted."""

    raw: bytes | None = None
    """The whole of it, if it was not UTF-8."""

    note: str = ""
    """What stands in the log besides."""


def read_question(
    store: Store, caller: Caller, text: str, *, default: str | None = None
) -> Question:
    """Give what a person is asked in the thread that *text* means.

    It need not wait yet: it is enough that a person's turn comes next. *default* is the agent of
    roles for which nobody named one, before the configured one.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId, ThreadNotActive: there is none to answer.
        WrongStatus: nobody is asked anything.
        LimitReached: it may take no further step.
        EndedElsewhere: it has ended at a remote, without what is here.
        CannotSign, UnfitSetting: what would be answered could not be recorded.
    """
    thread = read_active(store, text)[0].thread
    # Whoever is at work on it takes over what a remote has.
    with suppress(ThreadBusy), lock_thread(store, thread, since_ms=caller.now_ms()):
        take_over_tracked(store, thread)
    caller.check_signing(store)
    return _find_question(store, read_active(store, thread)[1], default)


def answer_thread(store: Store, caller: Caller, question: Question, answer: Answer) -> Stepped:
    """Record *answer* to *question*.

    Raises:
        AnswerRefused: it does not fit the role; nothing is recorded.
        HeadMoved: the question is not asked any more: somebody else was faster.
        ThreadBusy: somebody is at work on the thread.
        WrongStatus, ThreadNotActive, LimitReached, EndedElsewhere: it cannot be answered now.
        CannotSign, UnfitSetting: its commit cannot be signed, as the settings ask.
    """
    thread = question.thread
    _check_answer(question, answer)
    with lock_thread(store, thread, since_ms=caller.now_ms()) as lock:
        check_not_stopped(store, thread)
        lock.say(question.role, PERSON)
        take_over_tracked(store, thread)
        for _ in range(_MOST_TRIES):
            seen = read_active(store, thread)
            now = _find_same(store, seen[1], question)
            # Who steers a thread takes no lock: then all is looked at again.
            with suppress(HeadMoved):
                if now.is_put:
                    _check_answer(now, answer)
                    return _recorded(store, caller, seen, (now, answer))
                wait_for_person(store, caller, seen, role=now.role, agent=now.agent)
    raise HeadMoved(thread)


def _find_same(store: Store, snapshot: Snapshot, question: Question) -> Question:
    """Find the question again.

    Raises:
        HeadMoved: another one is asked by now.
    """
    now = _find_question(store, snapshot, question.agent.payload["command"])
    if (now.head, now.role) != (question.head, question.role):
        raise HeadMoved(question.thread)
    return now


def _check_answer(question: Question, answer: Answer) -> None:
    try:
        canonical([answer.meta, answer.content, dict(answer.state or {}), dict(answer.usage or {})])
        problem = find_problem(question.schema, answer.meta)
    except NotCanonical as error:
        problem = error.message
    if problem is not None:
        raise AnswerRefused(question, problem)


def _find_question(store: Store, snapshot: Snapshot, default: str | None) -> Question:
    """Find whose turn it is, if it is a person's."""
    present = snapshot.get_present()
    waiting = present.waiting
    status = snapshot.record.status
    is_put = status == "waiting" and waiting is not None and waiting.until is None
    if not is_put and status != "ready":
        raise _wrong_status(snapshot, present)
    workflow = parse_workflow(snapshot.get_node(present.workflow))
    if waiting is not None and is_put:
        role = waiting.role
    else:
        role = decide_next(snapshot, present, workflow)
    if role == END:
        hint = "`uwf thread step {thread}` ends it"
        raise WrongStatus(snapshot, "is at its end: nobody's turn comes", hint)
    if role not in workflow.roles:
        problem = f"waits for {role}, which is no role of its workflow any more"
        hint = "`uwf thread amend {thread}` gives it a workflow with that role again"
        raise WrongStatus(snapshot, problem, hint)
    check_limits(snapshot.record.thread, present)
    agent = (
        _find_person(snapshot, present, role)
        if is_put
        else _choose_person(store, snapshot, present, role=role, default=default)
    )
    schema = get_output_schema(snapshot, workflow, role)
    return Question(snapshot.record.thread, snapshot.record.node, role, schema, agent, is_put)


def _find_person(snapshot: Snapshot, present: Present, role: str) -> Node:
    """Give the AgentConfig of whom a thread waits for: a step may have named a person itself."""
    if role in present.binding:
        bound = get_typed(snapshot, present.binding[role], AGENT_CONFIG)
        if is_person(bound):
            return bound
    return build_agent({"command": PERSON}, timestamp=snapshot.commit.time_s * 1000)


def _choose_person(
    store: Store, snapshot: Snapshot, present: Present, *, role: str, default: str | None
) -> Node:
    try:
        # Nothing is run, so nothing has to be trusted.
        choice = Choice(default=default, trust=True)
        agent = choose_agent(store, snapshot, present, role=role, choice=choice)
    except NoAgent:
        problem = f"waits for nobody: no agent is bound to {role}, whose turn it is"
        hint = f"`uwf thread step {{thread}} --agent {_as_word(role)}` asks a person"
        raise WrongStatus(snapshot, problem, hint) from None
    if not is_person(agent):
        problem = f"waits for nobody: it is the turn of {role}, which an agent plays"
        hint = (
            "`uwf thread step {thread}` lets it; to play it yourself: "
            f"`uwf thread amend {{thread}} --agent {_as_word(role)}`"
        )
        raise WrongStatus(snapshot, problem, hint)
    return agent


def _as_word(role: str) -> str:
    """Bind *role* to a person as a word of a shell, in a text that is still to be formatted."""
    return shlex.quote(f"{role}={PERSON}").replace("{", "{{").replace("}", "}}")


def _wrong_status(snapshot: Snapshot, present: Present) -> WrongStatus:
    status, waiting = snapshot.record.status, present.waiting
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


def _recorded(
    store: Store, caller: Caller, seen: tuple[Head, Snapshot], said: tuple[Question, Answer]
) -> Stepped:
    head, snapshot = seen
    transition = _transition(store, caller, snapshot, said)
    commit = record_next(store, snapshot, transition, caller.signing(store))
    advance_head(store, head, commit)
    return tell_stepped(transition.record, said=transition.said)


def _transition(
    store: Store, caller: Caller, snapshot: Snapshot, said: tuple[Question, Answer]
) -> Transition:
    """Build what an answer leaves: what a step does, but for what only an agent has."""
    question, answer = said
    now, since = caller.now_ms(), find_since(store, snapshot)
    present = snapshot.get_present()
    turn = Turn(
        store, snapshot, present, question.role, question.agent, environ=caller.environ, workdir=""
    )
    reply = AgentReply(
        answer.meta,
        answer.content,
        "object",
        raw=answer.raw,
        usage=None if answer.usage is None else dict(answer.usage),
        state=None if answer.state is None else dict(answer.state),
    )
    # The clock of whoever recorded the wait may be ahead of ours.
    since = min(since, now)
    transition = step_transition(turn, Played(reply, since, now - since), reply)
    step, *others = transition.nodes
    # The time that a question lies is nobody's work: a limit of execution time must not run out
    # over it. How long it lay follows from startedAt and the node's own time.
    payload = {name: value for name, value in step.payload.items() if name != "durationMs"}
    step = build_node(STEP, payload, timestamp=now)
    return transition._replace(
        record=transition.record._replace(event="answer", node=step.hash),
        present=present.after_step(payload),
        nodes=(step, *others),
        body=answer.note,
    )
