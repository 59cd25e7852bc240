import copy
from collections.abc import Callable
from typing import Any

import pytest
from agentkit.conftest import DOCUMENT
from answering import Answers
from commands.crowd import at_once
from commands.flows import CHECKS, begin_outer
from commands.turns import branches
from commands.world import DEMO, World, fails, says

from uwf_git.agentkit.ladder import find_misfit
from uwf_git.commands.control.answer import (
    AnswerRefused,
    PersonAnswer,
    answer_thread,
    ask_person,
    build_page,
    build_signalled,
    read_question,
    steer_thread,
)
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.start import StartRequest
from uwf_git.commands.turn.branches import ThreadNotActive, WrongStatus
from uwf_git.commands.turn.flow import LimitReached
from uwf_git.commands.turn.turn import StepFiles, ThreadResult
from uwf_git.engine.turn_context import AgentContext, parse_context
from uwf_git.errors import UwfError
from uwf_git.model.definition.source import read_definition
from uwf_git.model.event_folds import Cause
from uwf_git.model.names import ThreadId
from uwf_git.model.node import Node
from uwf_git.model.thread import Amendment, build_signal
from uwf_git.model.workflow import build_workflow
from uwf_git.model.yaml_reader import parse_yaml
from uwf_git.store.threads.heads import HeadMoved
from uwf_git.store.threads.history import NewCommit, Snapshot, walk_history
from uwf_git.store.threads.local_files import ThreadBusy, lock_stop, lock_thread

GOOD = PersonAnswer({"ok": True}, "I read it.")


def refused(world: World, thread: ThreadId, match: str) -> str:
    """Answer a thread that does not wait for it; return the hint."""
    with pytest.raises(WrongStatus, match=match) as caught:
        world.answer(thread, GOOD)
    return caught.value.hint or ""


@pytest.fixture
def thread(world: World) -> ThreadId:
    """Return a thread that waits for a person to play the checker."""
    return world.waiting()


def test_answer_is_a_step_by_the_person_that_gave_it(world: World, thread: ThreadId) -> None:
    since = world.snapshot(thread).commit.time_s * 1000

    answered = world.answer(thread, GOOD._replace(note="After a talk."))

    snapshot = world.snapshot(thread)
    record = snapshot.record
    assert (answered.status, answered.role, answered.depth) == ("ready", "checker", 2)
    assert (record.event, record.role, record.agent) == ("answer", "checker", "human")
    assert snapshot.commit.author == b"C O Mitter <committer@example.com>"
    assert snapshot.body == "After a talk."
    step = snapshot.get_head_node()
    assert step.payload["meta"] == {"ok": True}
    assert step.payload["startedAt"] == since
    assert step.timestamp > since
    assert "rung" not in step.payload
    assert "durationMs" not in step.payload
    assert snapshot.get_present().waiting is None
    assert world.step(thread).status == "completed"
    world.assert_whole()


def test_answer_may_patch_the_state_and_say_what_it_cost(world: World, thread: ThreadId) -> None:
    world.answer(thread, GOOD._replace(state={"a": 1}, usage={"costUsd": 2}, raw=b"\xff"))

    present = world.snapshot(thread).get_present()
    assert (present.state, present.usage) == ({"a": 1}, {"costUsd": 2})
    world.assert_whole()


def test_answer_that_is_overtaken_every_time_gives_up(world: World, thread: ThreadId) -> None:
    question = read_question(world.store, world.caller, thread)
    patched: list[ThreadResult] = []

    def now_ms() -> int:
        assert len(patched) < 100
        patched.append(world.patch(thread, {"n": len(patched)}))
        return world.caller.now_ms()

    with pytest.raises(HeadMoved):
        answer_thread(world.store, world.caller._replace(now_ms=now_ms), question, GOOD)

    assert world.events(thread) == ["start", "step", "wait"] + ["patch"] * len(patched)
    assert world.snapshot(thread).record.status == "waiting"


def test_person_whom_only_the_step_named_is_waited_for_all_the_same(world: World) -> None:
    thread = world.begun()
    assert world.step(thread, command="human").status == "waiting"
    question = read_question(world.store, world.caller, thread)
    assert question.agent.timestamp == world.snapshot(thread).commit.time_s * 1000

    world.answer(thread, PersonAnswer({"text": "By hand."}))

    step = show_thread(world.store, thread)["step"]
    assert (step["agent"], step["meta"]) == ("human", {"text": "By hand."})
    world.assert_whole()


def test_thread_that_is_not_waiting_says_what_to_type(world: World, thread: ThreadId) -> None:
    world.pause(thread)
    assert f"`uwf thread resume {thread}`" in refused(world, thread, "is paused")

    world.resume(thread)
    world.answer(thread, GOOD)
    assert f"`uwf thread step {thread}`" in refused(world, thread, "is at its end")

    world.kill(thread)
    with pytest.raises(ThreadNotActive):
        world.answer(thread, GOOD)


def test_thread_that_has_split_names_the_branch_that_waits(world: World) -> None:
    flow = world.put(CHECKS).workflow
    alone = world.start(workflow=flow)
    asks = world.start("nobody", "tester=human", workflow=flow)
    for thread in (alone, asks):
        world.step(thread, says({}))
        world.step(thread, says({}))
    refused(world, alone, "is split, and waits for no answer")
    for _ in range(2):
        world.step(asks, says({}))
    branch = branches(world, asks)[1]

    hint = refused(world, asks, f"its branch {branch} waits for an answer")

    assert hint == f"`uwf thread answer {branch}` asks"


def test_role_that_a_workflow_plays_is_answered_by_nobody(world: World) -> None:
    thread = begin_outer(world)

    with pytest.raises(WrongStatus, match="builder, which comes next, goes on in branches"):
        read_question(world.store, world.caller, thread, default="human")


def test_thread_that_has_failed_or_hit_a_limit_waits_for_no_answer(world: World) -> None:
    thread = world.begun()
    world.fail(thread, fails("limit", left=StepFiles(reset_at=4_000_000_000_000)))
    assert "uwf thread resume" in refused(world, thread, "waits until 2096")

    world.resume(thread)
    world.fail(thread)
    assert "uwf thread retry" in refused(world, thread, "has failed")


def test_thread_at_its_limit_is_not_answered(world: World, thread: ThreadId) -> None:
    amend(world, thread, Amendment(limits={"maxSteps": 1}))

    with pytest.raises(LimitReached):
        world.answer(thread, GOOD)


def amend(world: World, thread: ThreadId, amendment: Amendment, *nodes: Node) -> None:
    def plan(snapshot: Snapshot) -> NewCommit:
        signal = build_signal("amend", timestamp=world.caller.now_ms(), amendment=amendment)
        return build_signalled(snapshot, Cause(), signal=signal, nodes=nodes)

    steer_thread(world.store, world.caller, thread, plan)


def exchange(world: World, thread: ThreadId, source: str) -> None:
    definition = read_definition(
        parse_yaml(source), check_condition=lambda _: None, check_schema=lambda _: []
    )
    node, nodes = build_workflow(definition, timestamp=1)
    amend(world, thread, Amendment(workflow=node.hash), node, *nodes)


def test_role_that_the_workflow_has_no_more_cannot_be_answered(world: World) -> None:
    thread = world.waiting()
    exchange(world, thread, DEMO.replace("checker", "other"))

    refused(world, thread, "checker, which its workflow no longer has")
    shown = show_thread(world.store, thread)["question"]
    assert (shown["role"], "fields" in shown) == ("checker", False)
    assert list_thread_rows(world.store, ListRequest())[0]["question"] == ""


def test_workflow_that_was_exchanged_while_a_person_thought_has_its_own_schema(
    world: World, thread: ThreadId
) -> None:
    question = read_question(world.store, world.caller, thread)
    exchange(world, thread, DEMO.replace("{ok: {type: boolean}}", "{ok: {type: string}}"))

    with pytest.raises(AnswerRefused, match="true is not of type 'string'"):
        answer_thread(world.store, world.caller, question, GOOD)


def test_answer_to_an_earlier_question_is_not_taken_for_the_next(world: World) -> None:
    """A late answer must not approve a draft that the person has not seen."""
    thread = world.waiting()
    late = read_question(world.store, world.caller, thread)
    world.answer(thread, PersonAnswer({"ok": False}))
    world.step(thread)
    assert world.step(thread).status == "waiting"

    with pytest.raises(HeadMoved):
        answer_thread(world.store, world.caller, late, GOOD)
    assert world.snapshot(thread).record.status == "waiting"


def test_patch_while_a_person_thinks_does_not_cost_the_answer(world: World) -> None:
    thread = world.waiting()
    question = read_question(world.store, world.caller, thread)
    world.patch(thread, {"colour": "red"})

    answer_thread(world.store, world.caller, question, GOOD._replace(state={"size": 3}))

    assert world.snapshot(thread).get_present().state == {"colour": "red", "size": 3}
    # It began with the question, and not with the patch.
    waited = list(walk_history(world.store, world.tip(thread)))[2]
    assert waited.record.event == "wait"
    started = world.snapshot(thread).get_head_node().payload["startedAt"]
    assert started == waited.commit.time_s * 1000
    world.assert_whole()


def test_pause_while_a_person_thinks_refuses_the_answer(world: World, thread: ThreadId) -> None:
    question = read_question(world.store, world.caller, thread)
    world.pause(thread)

    with pytest.raises(WrongStatus, match="is paused"):
        answer_thread(world.store, world.caller, question, GOOD)


def test_answer_is_refused_while_the_thread_is_locked_or_being_stopped(world: World) -> None:
    thread = world.waiting()
    question = read_question(world.store, world.caller, thread)

    for lock in (lock_thread, lock_stop):
        with lock(world.store, thread, since_ms=1):
            assert read_question(world.store, world.caller, thread) == question
            with pytest.raises(ThreadBusy):
                answer_thread(world.store, world.caller, question, GOOD)
    assert world.answer(thread, GOOD).status == "ready"


def test_pain_21_of_two_answers_at_once_one_is_recorded(world: World, thread: ThreadId) -> None:
    def act(number: int) -> Any:
        world.reopen()
        try:
            return world.answer(thread, PersonAnswer({"ok": True}, f"Said by {number}.")).status
        except UwfError as error:
            return error.exit_status

    told = at_once(4, act)

    assert told.count("ready") == 1
    assert set(told) <= {"ready", 1, 4}
    world.reopen()
    assert world.events(thread).count("answer") == 1
    world.assert_whole()


def test_unbound_role_has_no_question_without_a_default_agent(world: World) -> None:
    world.put()
    thread = world.begin(StartRequest("demo", "Do it."))

    hint = refused(world, thread, "no agent is bound to writer")
    assert f"`uwf thread step {thread} --agent writer=human`" in hint

    # As $UWF_AGENT says it.
    question = read_question(world.store, world.caller, thread, default="human")
    assert (question.role, question.is_put) == ("writer", False)
    said = PersonAnswer({"text": "By hand."})
    assert answer_thread(world.store, world.caller, question, said).depth == 1


def test_thread_that_waits_for_an_agent_says_whose_turn_it_is(world: World) -> None:
    thread = world.begun()

    hint = refused(world, thread, "the turn of writer, which an agent plays")

    assert f"`uwf thread step {thread}`" in hint
    assert f"`uwf thread amend {thread} --agent writer=human`" in hint


def context(**replaced: Any) -> AgentContext:
    return parse_context(copy.deepcopy(DOCUMENT) | replaced)


def ask(me: Answers) -> PersonAnswer:
    role = context().current_role
    return ask_person(me, role, check=find_misfit, edit=lambda text: f"{text}Written.\n\n")


def test_page_shows_the_last_step_the_last_error_and_the_hint(
    golden: Callable[[str, str], None],
) -> None:
    error = {"kind": "schema", "message": "approved is missing"}

    golden("commands/page.md", build_page(context(lastError=error, hint="look at the tests")))
    assert "hint" not in build_page(context(hint=None))


def test_page_of_a_long_step_says_where_the_rest_is() -> None:
    page = build_page(context(steps=[DOCUMENT["steps"][-1] | {"content": "x" * 50_000}]))

    assert len(page) < 30_000
    assert "`uwf thread read` shows all of it" in page


def test_page_of_a_first_step_has_no_last_one() -> None:
    page = build_page(context(steps=[], depth=0))

    assert "step 1 of solve-issue" in page
    assert "The last step" not in page


def test_editor_opens_what_was_typed_or_else_what_was_said_before() -> None:
    assert ask(Answers("y", "", "", "Typed. ", ":e", "")).content == "Typed. Written."

    again = Answers("y", "", "", "Said. ", ".", "n", "", "", "", ":e", "y")
    assert ask(again).content == "Said. Written."
