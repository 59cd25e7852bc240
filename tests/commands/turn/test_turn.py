"""Agents that are typed for a drive or a step reach the branches whose roles they name."""

import json
from typing import Any

import pytest
from commands.at_work import newest_attempt
from commands.flows import plays, split_checks
from commands.step.test_step_thread import INNER, MIDDLE, OUTER, begun
from commands.turns import drive, script
from commands.world import World, content_player, fails, replied, says
from refusing import refuses

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.inspect.context import get_context, get_past_context, render_prompt
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.branches import WrongStatus
from uwf_git.commands.turn.choose_agent import check_roles
from uwf_git.commands.turn.next_move import NextMove, advise
from uwf_git.commands.turn.turn import (
    MAX_BYTES,
    MAX_FILES,
    Played,
    StepFiles,
    Turn,
    choose_workdir,
    read_files,
)
from uwf_git.model.names import ThreadId


def test_the_roles_are_those_of_all_workflows_inside(world: World) -> None:
    snapshot = world.snapshot(begun(world))

    known = check_roles(snapshot, "digger", ())

    assert known == {"asker", "builder", "planner", "digger", "closer"}
    assert check_roles(snapshot, None, ()) == frozenset()
    for until, agents in (("nobody", ()), (None, ("nobody=x",))):
        with refuses("no-such-role", match="has no role nobody") as caught:
            check_roles(snapshot, until, agents)
        assert set(caught.value.facts["roles"]) == known


def test_a_step_of_branches_gives_each_its_own_agent(world: World) -> None:
    at = split_checks(world)
    commands: dict[str, str] = {}

    def play(turn: Turn) -> Played:
        commands[turn.role] = turn.agent.payload["command"]
        return plays(turn)

    stepped = world.step(at.thread, play, agents=("reviewer=mine",))

    assert [each.error for each in stepped.branches] == [None, None]
    assert commands == {"reviewer": "mine", "tester": "nobody"}
    with refuses("no-such-role"):
        world.step(at.thread, play, agents=("nobody=mine",))


# A role may be given files: read at its turn, whole in its context; a missing one is free.


GRAPH = """
name: reading
initialState: {dir: docs}
roles:
  writer: {outputSchema: {type: object, required: [text]}, inputFiles: FILES}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: $END}
"""
FLOW = GRAPH[: GRAPH.index("moderator:")] + "root: {type: agent, agentId: writer}\n"
ANSWER = """printf '{"meta": {"text": "words"}, "content": "a text"}'"""


def begin(world: World, files: str, *, agent: str = ANSWER, source: str = GRAPH) -> ThreadId:
    docs = world.place / "docs"
    docs.mkdir(exist_ok=True)
    (docs / "1-a.md").write_text("first\n")
    (docs / "2-b.md").write_bytes(b"\xef\xbb\xbfzwei\r\n")
    return world.begun(source.replace("FILES", files), world.program(agent))


def given(world: World, thread: ThreadId) -> Any:
    return get_context(world.store, thread, role="writer")["inputFiles"]


@pytest.mark.parametrize("source", [GRAPH, FLOW], ids=["graph", "flow"])
def test_files_are_whole_in_context_and_prompt(world: World, source: str) -> None:
    thread = begin(world, "['${state.dir}/*.md', docs/1-a.md]", source=source)
    assert given(world, thread) == [
        {"path": "docs/1-a.md", "content": "first\n"},
        {"path": "docs/2-b.md", "content": "zwei\r\n"},
    ]
    prompt = render_prompt(get_context(world.store, thread))
    assert "# Files that you are given\n\n## docs/1-a.md\n\n<file>\nfirst\n</file>\n\n##" in prompt
    (world.place / "docs" / "1-a.md").write_text("later")
    assert given(world, thread)[0]["content"] == "later"
    world.step(thread, agent_player(None))
    world.assert_whole()


@pytest.mark.parametrize("source", [GRAPH, FLOW], ids=["graph", "flow"])
@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ("[docs/1-a.md, docs/none.md]", "docs/none.md is not there"),
        ("['*.md']", "*.md is not there"),
        ("[docs]", "docs is not there"),
        ("['${state.up}']", "../secret leads out of the work directory"),
        ("['${state.none}']", "has no value"),
        ("[docs/way]", "leads out of the work directory"),
        ("[docs/bytes]", "docs/bytes is not UTF-8"),
        ("[docs/large]", "docs/large is larger than 1,024 KiB"),
        ("['docs/n*']", "docs/nl\\nname has a line break"),
    ],
)
def test_file_that_cannot_be_given_fails_before_the_agent_is_paid(
    world: World, source: str, files: str, problem: str
) -> None:
    (world.place.parent / "secret").write_text("not for you")
    thread = begin(world, files, agent=f"touch paid; {ANSWER}", source=source)
    docs = world.place / "docs"
    (docs / "way").symlink_to("../../secret")
    (docs / "bytes").write_bytes(b"\xff")
    (docs / "nl\nname").touch()
    (docs / "large").write_bytes(b"x" * (MAX_BYTES + 1))
    world.patch(thread, {"up": "../secret"})
    # Of functions in this process, too.
    for play in (agent_player(None), content_player):
        before_ms = world.snapshot(thread).commit.time_s * 1000
        failed = world.fail(thread, play)
        attempt = newest_attempt(world, thread)
        assert (attempt["startedAt"], attempt["durationMs"]) == (before_ms, 0)
        assert failed.facts["kind"] == "input-file"
        assert problem in failed.message
    assert not (world.place / "paid").exists()
    assert "not for you" not in str(get_context(world.store, thread))
    world.assert_whole()


def test_file_that_goes_meanwhile_is_told_as_missing(world: World) -> None:
    thread = begin(world, "[docs/1-a.md]")
    (world.place / "docs" / "1-a.md").unlink()
    assert given(world, thread) == [{"path": "docs/1-a.md", "problem": "is not there"}]
    assert "## docs/1-a.md\n\n(It is not there.)" in render_prompt(get_context(world.store, thread))


def test_context_of_a_past_step_says_that_files_are_not_kept(world: World) -> None:
    thread = begin(world, "['docs/*.md']")
    world.step(thread, agent_player(None))
    [file] = get_past_context(world.store, world.snapshot(thread))["inputFiles"]
    assert file["path"] == "docs/*.md"
    assert "is not kept" in file["problem"]


def test_too_many_files_are_refused_at_once(world: World) -> None:
    for number in range(MAX_FILES + 1):
        (world.place / f"{number}.md").write_text("x")
    [file] = read_files(str(world.place), ["*.md"])
    assert file.problem is not None
    assert "more than 200 files" in file.problem


THREAD = ThreadId("01J00000000000000000000001")


def test_directory_is_remembered_once_it_was_named(world: World) -> None:
    (world.place / "sub").mkdir()

    first = choose_workdir(world.store, THREAD, str(world.place), named="sub")
    later = choose_workdir(world.store, THREAD, "/", named=None)

    assert first == later == str(world.place / "sub")


def test_thread_that_came_from_elsewhere_asks_for_one(world: World) -> None:
    with refuses("workdir-unknown") as caught:
        choose_workdir(world.store, THREAD, "/", named=None)

    assert f"uwf thread step {THREAD} --workdir PATH" in (caught.value.hint or "")


def test_wrong_directory_is_not_remembered(world: World) -> None:
    with refuses("not-a-directory"):
        choose_workdir(world.store, THREAD, "/", named="nowhere")

    with refuses("workdir-unknown"):
        choose_workdir(world.store, THREAD, "/", named=None)


@pytest.mark.parametrize("name", ["with space", "日本", "new\nline", "-dash", "\udcff"])
def test_any_name_of_a_directory_is_kept(name: str, world: World) -> None:
    (world.place / name).mkdir()

    choose_workdir(world.store, THREAD, str(world.place), named=name)

    assert choose_workdir(world.store, THREAD, "/", named=None) == str(world.place / name)


# Results that do not fit the role of a graph: what holds the thread up, and what to do.

PARALLEL = """\
name: middle
root: {type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}
"""

NEVER = """\
name: middle
root: {type: conditional, condition: state.never, nodes: [{type: agent, agentId: one}]}
"""


@pytest.mark.parametrize(("source", "problem"), [(PARALLEL, "'good'"), (NEVER, "null is not")])
def test_a_result_that_no_step_can_mend_needs_another_workflow(
    world: World, source: str, problem: str
) -> None:
    world.put(source)
    thread = world.begun(OUTER)
    with refuses("meta-unfit", match=problem) as caught:
        drive(world, thread, script())
    middle = caught.value.facts["thread"]
    with pytest.raises(WrongStatus):
        world.poke(middle)

    error, hint = caught.value.message, caught.value.hint or ""

    assert f"`uwf thread fork {thread}`" in hint
    held = {"thread": middle, "status": "ready", "error": error, "hint": hint}
    assert show_thread(world.store, thread)["heldBy"] == [held]
    told = advise(world.store, world.snapshot(thread), NextMove())
    assert (told.text, told.is_usual) == (f"{error}; {hint}", False)
    # As the hint says.
    fork = world.fork(thread)
    world.put(INNER)
    world.put(MIDDLE)
    world.amend(fork, workflow=world.put(OUTER).workflow, default_agent="nobody")
    play = script(digger={"depth": 2}, closer={"good": True})
    assert drive(world, fork, play)[0].stopped == "end"
    world.assert_sound(fork)


SCHEMA = """\
name: strict
roles:
  worker:
    outputSchema: %s
moderator:
  - {from: $START, to: worker}
  - {from: worker, to: $END}
"""


def failure(world: World, schema: Any, meta: Any, **fields: Any) -> TurnFailed:
    thread = world.begun(SCHEMA % json.dumps(schema))
    failed = world.fail(thread, lambda _turn: replied(meta, **fields))
    assert failed.facts["kind"] == "schema"
    assert world.snapshot(thread).record.depth == 0
    return failed


def test_pattern_that_runs_for_ever_is_stopped_and_reported(world: World) -> None:
    failed = failure(world, {"type": "string", "pattern": "^(a+)+$"}, "a" * 64 + "!")

    assert "cannot be checked" in failed.message
    assert "took too much time" in failed.message


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        ("meta.text", {"meta": {"text": "\ud800"}}),
        ("meta[0]", {"meta": [float("nan")]}),
        ("state.a", {"state": {"a": "\udc00"}}),
        ("usage.tokens", {"usage": {"tokens": float("inf")}}),
        ("session", {"session": "\ud800"}),
        ("content", {"content": "\ud800"}),
    ],
)
def test_what_no_node_can_hold_is_a_failed_attempt(
    place: str, fields: dict[str, Any], world: World
) -> None:
    assert f"the value at $.{place} " in failure(world, {}, **{"meta": {}, **fields}).message


@pytest.mark.parametrize(
    ("meta", "content"),
    [({"a": "x" * 33_000_000}, "x"), ({}, "\ufffd" * 11_000_000)],
    ids=["fields", "text"],
)
def test_answer_that_no_shared_store_would_take_is_a_failed_attempt(
    meta: Any, content: str, world: World
) -> None:
    assert "more than 31m" in failure(world, {"type": "object"}, meta, content=content).reason


def test_usage_below_zero_is_refused_and_told_to_the_next_try(world: World) -> None:
    failed = failure(world, {}, {}, usage={"costUsd": -5, "inputTokens": 1})

    assert "usage: costUsd is -5" in failed.message


def test_usage_of_a_failed_try_does_not_lower_what_was_spent(world: World) -> None:
    thread = world.stepped(says({"text": "x"}, usage={"costUsd": 3}))

    world.fail(thread, fails(left=StepFiles(usage={"costUsd": -3})))

    assert world.snapshot(thread).get_present().usage == {"costUsd": 3}
