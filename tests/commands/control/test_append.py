"""More roles and transitions for one thread that is under way, and for no other."""

from pathlib import Path
from typing import Any

import pytest
from commands.world import World, content_player, says
from refusing import refuses

from uwf_git.commands.control.append import AppendRequest, append_to_thread
from uwf_git.commands.control.change_rules import Amended
from uwf_git.commands.turn.branches import ThreadNotActive
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.workflow.history import show_workflow
from uwf_git.model.definition.definition import InvalidWorkflow
from uwf_git.model.yaml_reader import BadYaml
from uwf_git.store.threads.local_files import ThreadBusy
from uwf_git.store.trust import is_trusted

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
    world.assert_whole()


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
    before = world.tip(thread)

    with refuses("nothing-to-append"):
        append(world, thread)

    assert world.tip(thread) == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("roles: {lonely: }", r"line 1 \(roles.lonely\): no path from \$START leads to this role"),
        ("name: x", "cannot be appended"),
    ],
)
def test_file_that_is_not_right_changes_nothing(text: str, told: str, world: World) -> None:
    thread = world.begun()
    before = world.tip(thread)

    with pytest.raises(InvalidWorkflow, match=told):
        append(world, thread, text + "\nagentOverrides: {writer: bad}\n")

    assert world.tip(thread) == before
    assert not is_trusted(world.store, {"command": "bad"}, world.caller.cwd)


def test_nothing_is_appended_while_a_step_is_under_way_or_after_the_end(world: World) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Played:
        with pytest.raises(ThreadBusy):
            append(world, thread)
        return content_player(turn)

    world.step(thread, play)
    world.kill(thread)
    with pytest.raises(ThreadNotActive):
        append(world, thread)
