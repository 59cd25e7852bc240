"""Tasks whose workflow is made of containers."""

import copy
import dataclasses
import json
import pickle
import threading
import zlib
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands.step.test_record_turn import CHECKS
from commands.world import DEMO
from library.conftest import check, write
from library.crowd import Crowd
from refusing import raising
from store.small_packs import damage, loosen

from uwf_git import (
    AgentContext,
    AgentFailed,
    PlayerResult,
    Refused,
    TaskFilter,
    TaskHandle,
    TaskRuntime,
)
from uwf_git.agentkit import AgentResult
from uwf_git.engine.moderator import lazy_list
from uwf_git.engine.turn_context import Step
from uwf_git.errors import StoreDamaged
from uwf_git.library import players
from uwf_git.library.arguments import WrongArgument
from uwf_git.library.players import PlayerFunction, StepMemory
from uwf_git.store.store import open_store

REASON = "too many errors; the direction may be wrong"

WATCHED = """\
name: watched
initialState: {errorCount: 0}
config: {stateSnapshot: true}
root:
  type: loop
  condition: state.errorCount >= 0
  maxIterations: 50
  nodes: [{type: agent, agentId: coder}]
"""


def say(**answers: Any) -> dict[str, PlayerFunction]:
    """Return players that always answer the same, for the roles of `checks`."""

    def player(role: str) -> PlayerFunction:
        return lambda _context: answers.get(role, {})

    return {role: player(role) for role in ("coder", "reviewer", "builder", "tester", "closer")}


fail = raising(ValueError("no luck"))


def begin(store: str, source: str = CHECKS, **players: PlayerFunction) -> TaskHandle:
    return TaskRuntime(store, players={**say(), **players}).start(source, "Do it.")


JUDGED = """\
name: judged
description: Work that is verified, once.
root:
  type: sequential
  nodes: [{type: agent, agentId: coder, retries: 0, verifiedBy: {agentId: judge, when: meta.ok}}]
"""


def test_rejection_of_the_work_is_the_error_of_the_task(store: str) -> None:
    task = begin(store, JUDGED, judge=lambda _context: {"ok": False, "issues": ["no tests"]})
    assert (task.run().status, task.error) == ("failed", "judge rejected it: no tests")
    task.retry()
    assert task.error == "judge rejected it: no tests"
    task.step()
    assert task.error is None


def test_branches_are_played_and_joined(store: str) -> None:
    Crowd(store, branches=5, steps=3).check(jobs=3)


def test_watcher_interrupts_with_a_reason(store: str) -> None:
    has_decided = threading.Event()

    def code(context: AgentContext) -> Mapping[str, Any]:
        if context.iteration == 7:
            assert has_decided.wait(30)
        return {"errorCount": context.state["errorCount"] + 3}

    task = begin(store, WATCHED, coder=code)

    def watch() -> None:
        for event in task.events(follow=True):
            payload = event.payload
            if (
                event.type == "workflow:progress"
                and payload.get("iteration", 0) > 3
                and payload["state"]["errorCount"] > 10
            ):
                has_decided.set()
                task.interrupt(REASON)
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    ran = task.run()
    watcher.join(30)

    assert (ran.stopped, ran.status) == ("paused", "paused")
    status = task.query()
    assert status.document["reason"] == REASON
    assert status.current_node == "coder"
    assert status.current_iteration is not None
    assert 3 < status.current_iteration < 50
    assert status.state["errorCount"] == 3 * status.depth


def test_split_task_says_what_its_branches_do(store: str) -> None:
    task = begin(store, reviewer=fail)
    task.step()
    task.step()
    ran = task.run(jobs=1)
    assert (ran.stopped, ran.status) == ("failed", "split")
    assert isinstance(ran.failure, AgentFailed)

    status = task.query()

    assert (status.status, status.current_node, status.current_iteration) == ("split", "checks", 1)
    first, second = status.branches
    assert (first.label, first.status, first.error) == ("reviewer", "failed", "ValueError: no luck")
    assert (second.number, second.label) == (1, "testing")
    assert status.held_by == (f"{first.task_id} failed: ValueError: no luck",)
    inside = TaskRuntime(store).query(first.task_id)
    assert (inside.parent_task_id, inside.is_branch, inside.task_depth) == (task.task_id, True, 1)


def test_step_of_a_split_task_raises_what_failed_in_a_branch(store: str) -> None:
    task = begin(store, reviewer=fail)
    task.step()
    task.step()

    with pytest.raises(AgentFailed, match="no luck"):
        task.step(jobs=1)

    assert [(each.status, each.depth) for each in task.query().branches] == [
        ("failed", 0),
        ("ready", 1),
    ]


def test_steps_and_usage_are_those_of_branches_as_well(store: str) -> None:
    task = begin(store, reviewer=lambda _context: PlayerResult({}, usage={"turns": 1}))

    ran = task.run(max_steps=3, jobs=1)

    assert (ran.stopped, ran.steps, ran.status) == ("max-steps", 3, "split")
    assert task.query().usage == task.query().document["usage"] == {"turns": 1}
    assert task.run().status == "completed"


def test_jobs_is_a_number(store: str) -> None:
    with pytest.raises(WrongArgument):
        begin(store).run(jobs=0)


# What functions have read of a task is read once, and is always what the task has now.

KEY = "sk-" + "a1B2c3D4" * 4


def begin_players(store: str, writer: PlayerFunction, **more: Any) -> TaskHandle:
    runtime = TaskRuntime(store, players={"writer": writer, "checker": check}, **more)
    return runtime.start(DEMO, "Do it.")


def test_steps_of_a_context_can_be_read_later_and_by_several_python_threads(store: str) -> None:
    seen: list[AgentContext] = []

    def look(context: AgentContext) -> Mapping[str, Any]:
        seen.append(context)
        return write(context)

    TaskRuntime(store, players={"writer": look, "checker": check}).start(DEMO, "Do it.").run()

    first, second = seen
    # Bound to their moments, though the task has ended since.
    assert (len(first.steps), len(second.steps)) == (0, 2)
    assert second.steps[-1].meta == {"ok": False}
    with ThreadPoolExecutor(4) as pool:
        read = list(pool.map(lambda place: second.steps[place % 2].role, range(40)))
    assert read == ["writer", "checker"] * 20
    document = json.loads(json.dumps(dataclasses.asdict(second)))
    assert [step["role"] for step in document["steps"]] == ["writer", "checker"]
    assert pickle.loads(pickle.dumps(second)) == second == copy.deepcopy(second)


def test_damaged_step_stops_a_function_that_reads_it(store: str) -> None:
    def look(context: AgentContext) -> Mapping[str, Any]:
        looked.append([step.meta for step in context.steps[looked_at]])
        return write(context)

    looked: list[Any] = []
    looked_at = slice(0, None)
    task = begin_players(store, look)
    task.run(max_steps=2)
    damage_blob(store, b'"Do it. (1)"')

    with pytest.raises(StoreDamaged):
        task.step()
    assert (task.query().status, task.query().error) == ("ready", None)
    looked_at = slice(-1, None)
    task.step()

    assert looked == [[], [{"ok": False}]]


def damage_blob(store: str, text: bytes) -> None:
    """Overwrite each blob with *text*, as a bad disk would."""
    loosen(open_store(store))
    for path in Path(store, "objects").glob("??/*"):
        content = zlib.decompress(path.read_bytes())
        if content.startswith(b"blob") and text in content:
            damage(path, b"not what was written")


def test_player_that_starts_a_task_names_itself_as_the_parent(store: str) -> None:
    children: list[TaskHandle] = []

    def delegate(context: AgentContext) -> Mapping[str, Any]:
        assert context.start.parent_thread is None
        children.append(runtime.start(DEMO, "A part.", agents="x", parent=context.thread_id))
        return {"text": children[0].task_id}

    runtime = TaskRuntime(store, players={"writer": delegate})
    task = runtime.start(DEMO, "Do it.", agents={"checker": {"command": "x", "timeout": 9}})
    task.step()

    child = children[0].query()
    assert (child.parent_task_id, child.task_depth) == (task.task_id, 1)
    assert (task.query().parent_task_id, task.query().task_depth) == (None, 0)
    assert runtime.list(TaskFilter(parent=task.task_id)) == tuple(children)
    assert task.query().document["agentSettings"] == {"checker": {"timeout": 9}}
    task.amend(agents={"checker": {"env": {"A": "b"}}})
    assert task.query().document["agentSettings"] == {"checker": {"timeout": 9, "env": {"A": "b"}}}


@pytest.mark.parametrize("kind", [PlayerResult, AgentResult])
def test_result_may_hold_more_than_the_meta(kind: Callable[..., Any], store: str) -> None:
    state = {"seen": True, "gone": None}
    result = kind({"text": "x"}, "Said.", usage={"tokens": 5}, state=state)
    task = begin_players(store, lambda _context: result)
    task.step()

    status = task.query()
    assert status.state == {"seen": True}
    assert status.usage == {"tokens": 5}
    assert status.document["step"]["content"] == "Said."


def test_task_whose_functions_are_not_here_is_refused_and_left_as_it_is(
    runtime: TaskRuntime, task: TaskHandle
) -> None:
    before = task.query()
    elsewhere = TaskRuntime(runtime.path).task(task.task_id)

    with pytest.raises(Refused) as caught:
        elsewhere.step()

    assert caught.value.code == "no-such-player"
    assert caught.value.facts == {"role": "writer", "player": "writer"}
    assert task.query() == before


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ZeroDivisionError("nothing\nto divide by"), "ZeroDivisionError: nothing to divide by"),
        (SystemExit("over"), "SystemExit: over"),
        (CancelledError("too late"), "CancelledError: too late"),
        (GeneratorExit("closed"), "GeneratorExit: closed"),
        (OSError("no file caf\udce9 noir"), "OSError: no file caf noir"),
        (type("Mute", (Exception,), {"__str__": None})(), "Mute: <exception str() failed>"),
    ],
)
def test_function_that_raises_is_a_try_that_failed(
    store: str, raised: BaseException, told: str
) -> None:
    task = begin_players(store, raising(raised))
    with pytest.raises(AgentFailed) as caught:
        task.step()

    assert caught.value.facts["kind"] == "raised"
    status = task.query()
    assert status.error == told
    assert "in fail" in status.document["lastAttempt"]["stderr"]
    assert status.status == "failed"


def test_error_of_ours_keeps_its_words_and_its_hint(store: str) -> None:
    with pytest.raises(AgentFailed, match="the oven is cold") as caught:
        begin_players(store, raising(Refused("the oven\udce9 is cold", hint="light it"))).step()

    assert str(caught.value.hint).startswith("light it; `uwf thread step ")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("a text", "a player returns a mapping or a PlayerResult, not str"),
        (None, "not NoneType"),
        (PlayerResult({"text": "x"}, content=b"x"), "the content is of type bytes, not str"),  # type: ignore[arg-type]  # that is what is tried
        ({"text": 5}, "meta.text: 5 is not of type 'string'"),
        ({"text": {1, 2}}, "which JSON does not have"),
        ({}, "'text' is a required property"),
    ],
)
def test_invalid_result_is_a_failed_attempt(given: Any, told: str, store: str) -> None:
    task = begin_players(store, lambda _context: given)

    with pytest.raises(AgentFailed) as caught:
        task.step()
    assert caught.value.facts["kind"] in {"raised", "schema"}
    assert told in (task.query().error or "")


def test_ctrl_c_is_recorded_and_raised(store: str) -> None:
    task = begin_players(store, raising(KeyboardInterrupt()))
    for go_on in (task.step, task.run):
        with pytest.raises(KeyboardInterrupt):
            go_on()

    status = task.query()
    assert (status.status, status.error) == ("ready", "it was interrupted")


def test_secret_of_the_environment_is_masked_in_a_result(store: str, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "MY_TOKEN": KEY}
    task = begin_players(store, lambda _context: {"text": f"use {KEY}"}, environ=environ)
    task.step()

    assert task.query().document["step"]["meta"] == {"text": "use [masked]"}


WORKFLOW = """\
name: count
roles:
  writer: {description: Writes., outputSchema: {type: object}}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: writer, when: depth < 9}
  - {from: writer, to: $END}
"""


class Reader:
    """A player that notes all that it sees of its task's steps."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []

    def play(self, context: AgentContext) -> dict[str, object]:
        self.seen.append([step.meta["number"] for step in context.steps])
        return {"number": len(self.seen)}


def test_each_step_is_read_once_and_the_newest_is_compared(store: str) -> None:
    contexts: list[AgentContext] = []

    def keep(context: AgentContext) -> dict[str, object]:
        contexts.append(context)
        return {"number": len(contexts)}

    begin(store, WORKFLOW, writer=keep).run()
    memory, read = StepMemory(), list[int]()

    for context in contexts:
        steps = context.steps

        def note(place: int, steps: Sequence[Step] = steps) -> Step:
            read.append(place)
            return steps[place]

        seen = memory.extend(replace(context, steps=lazy_list(len(steps), note))).steps
        assert [step.meta["number"] for step in seen] == list(range(1, len(steps) + 1))

    assert read == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7]


def test_a_step_that_was_taken_back_is_not_remembered(store: str) -> None:
    reader = Reader()
    task = begin(store, WORKFLOW, writer=reader.play)
    for _step in range(3):
        task.step()

    task.poke()
    task.step()
    task.step()

    assert reader.seen[-2:] == [[1, 2], [1, 2, 4]]


def test_what_is_remembered_is_shared_and_cannot_be_changed(store: str) -> None:
    problems: list[str] = []

    def spoil(context: AgentContext) -> dict[str, object]:
        for step in context.steps:
            try:
                step.meta["number"] = 0
            except TypeError as error:
                problems.append(str(error))
        return {"number": len(context.steps)}

    begin(store, WORKFLOW, writer=spoil).run(max_steps=3)

    assert problems == ["this dict is shared and cannot be changed"] * 3


def test_more_than_the_most_is_forgotten_and_read_again(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(players, "_STEP_BYTES", players.MOST_BYTES // 3)
    reader = Reader()

    begin(store, WORKFLOW, writer=reader.play).run()

    assert reader.seen[-1] == list(range(1, 9))
