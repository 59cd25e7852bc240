"""More roles and transitions for one thread that is under way, and for no other."""

from pathlib import Path
from typing import Any

import pytest
from commands.forging import troubles
from commands.world import World, content_player, says
from refusing import refuses

from uwf_git.commands.control.append import AppendRequest, append_to_thread
from uwf_git.commands.control.change_rules import Amended
from uwf_git.commands.control.steer import kill_thread
from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.turn.branches import ThreadNotActive
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.workflow.history import list_history, show_workflow
from uwf_git.model.definition.definition import InvalidWorkflow
from uwf_git.model.yaml.include import BadYaml
from uwf_git.store.threads.lock import ThreadBusy
from uwf_git.store.trust import is_trusted
from uwf_git.store.workflows import find_version

DOCS = """\
roles:
  doc-writer: {systemPrompt: Document it.}
moderator:
  - {from: checker, to: doc-writer, when: meta.ok}
  - {from: doc-writer, to: $END}
"""


def append(world: World, thread: str, text: str = DOCS, **asked: Any) -> Amended:
    request = AppendRequest(thread, text.encode(), **asked)
    return append_to_thread(world.store, world.caller, request)


def test_thread_goes_on_past_its_old_end(world: World) -> None:
    """Seed 004: if it is approved, append doc-writer."""
    thread = world.begun()
    for _ in range(2):
        world.step(thread)

    amended = append(world, thread, default_agent="uwf-docs", reason="The API changed.")

    assert (amended.name, amended.agents) == ("demo", {"doc-writer": "uwf-docs"})
    assert world.snapshot(thread).body == "The API changed."
    assert world.step(thread, says({})).role == "doc-writer"
    assert world.step(thread).status == "completed"
    assert troubles(world) == []


def test_neither_the_registry_nor_another_thread_changes(world: World) -> None:
    thread, other = world.begun(), world.start()
    before = find_version(world.store, "demo")
    appended = append(world, thread)

    assert find_version(world.store, "demo") == before
    assert world.snapshot(other).record.workflow != appended.workflow
    assert world.snapshot(world.start()).record.workflow != appended.workflow
    assert len(list_history(world.store, "demo")) == 1


def test_commit_says_what_was_added_and_the_signal_asks_for_it(world: World) -> None:
    thread = world.begun()
    append(world, thread, DOCS + "agentOverrides: {doc-writer: uwf-docs -v}\n")

    snapshot = world.snapshot(thread)
    assert snapshot.record.event == "amend"
    assert snapshot.record.cause is not None
    signal = snapshot.get_node(snapshot.record.cause).payload
    assert (signal["action"], list(signal["agentBinding"])) == ("append", ["doc-writer"])
    said = f"amend: adds to the workflow, now {snapshot.record.workflow}; agent of doc-writer"
    assert snapshot.subject == said


def test_agents_of_the_file_play_what_it_says_and_may_run_here(world: World) -> None:
    thread = world.begun()

    amended = append(world, thread, "agentOverrides: {checker: {command: strict, retries: 2}}\n")

    assert amended.agents == {"checker": "strict"}
    assert is_trusted(world.store, {"command": "strict", "retries": 2}, world.caller.cwd)
    world.step(thread)
    played: list[str] = []

    def play(turn: Turn) -> Played:
        played.append(turn.agent.payload["command"])
        return content_player(turn)

    world.step(thread, play)
    assert played == ["strict"]
    assert troubles(world) == []


def test_role_that_is_replaced_keeps_its_agent(world: World) -> None:
    thread = world.begun()

    amended = append(world, thread, "roles: {writer: {systemPrompt: Write better.}}\n")

    assert (amended.agents, amended.unbound) == ({}, ())
    assert get_context(world.store, thread)["role"]["systemPrompt"] == "Write better."
    world.step(thread, says({"whatever": 1}))
    assert troubles(world) == []


def test_result_is_held_against_the_role_as_it_is_now(world: World) -> None:
    thread = world.begun()
    append(world, thread, "roles: {writer: {schema: {type: object, required: [poem]}}}\n")

    with pytest.raises(Exception, match="poem"):
        world.step(thread, says({"text": "x"}))
    assert troubles(world) == []


def test_file_may_include_others_beside_it(world: World) -> None:
    thread = world.begun()
    (world.place / "prompt.md").write_text("Document it well.\n")
    text = DOCS.replace("Document it.", "!include prompt.md")

    amended = append(world, thread, text, path=str(Path(world.place, "docs.yaml")))

    shown = show_workflow(world.store, amended.workflow)
    assert shown["roles"]["doc-writer"]["systemPrompt"] == "Document it well.\n"
    with pytest.raises(BadYaml, match="standard input has no folder"):
        append(world, thread, text)


def test_what_is_there_already_is_not_added_again(world: World) -> None:
    thread = world.begun()
    append(world, thread)
    before = world.snapshot(thread).commit.oid

    with refuses("nothing-to-append"):
        append(world, thread)

    assert world.snapshot(thread).commit.oid == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("roles: {lonely: }", r"line 1 \(roles.lonely\): no path from \$START leads to this role"),
        (
            "graph:\n- {from: checkr, to: writer, when: a}",
            r"line 2 \(graph\[0\].from\): no role is called",
        ),
        ("graph:\n- {from: checker, to: writer, when: 'meta.('}", "line 2"),
        ("graph:\n- {from: checker, to: writer}", r"no path from \$START reaches \$END"),
        ("name: x", "cannot be appended"),
    ],
)
def test_file_that_is_not_right_changes_nothing(text: str, told: str, world: World) -> None:
    thread = world.begun()
    before = world.snapshot(thread).commit.oid

    with pytest.raises(InvalidWorkflow, match=told):
        append(world, thread, text + "\nagentOverrides: {writer: bad}\n")

    assert world.snapshot(thread).commit.oid == before
    assert not is_trusted(world.store, {"command": "bad"}, world.caller.cwd)


def test_nothing_is_appended_while_a_step_is_under_way_or_after_the_end(world: World) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Played:
        with pytest.raises(ThreadBusy):
            append(world, thread)
        return content_player(turn)

    world.step(thread, play)
    kill_thread(world.store, world.caller, thread)
    with pytest.raises(ThreadNotActive):
        append(world, thread)
