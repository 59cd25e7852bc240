import pytest
from commands.forging import forge, holds, place
from commands.world import DEMO, World
from store.loose import lose

from uwf_git.commands.workflow.build import PutWorkflow
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.commands.workflow.history import list_history, remove_workflow, rollback_workflow

REF = "refs/workflows/demo"


@pytest.fixture
def puts(world: World) -> list[PutWorkflow]:
    """Put three versions."""
    texts = [DEMO, DEMO.replace("Write.", "Write well."), "# why\n" + DEMO]
    return [world.put(text) for text in texts]


def test_rows_have_time_author_and_changes(world: World, puts: list[PutWorkflow]) -> None:
    newest, middle, first = list_history(world.store, "demo")

    assert [row["version"] for row in (newest, middle, first)] == [
        put.version for put in reversed(puts)
    ]
    assert middle["changes"] == [{"kind": "changed", "path": "roles.writer.systemPrompt"}]
    assert "changes" not in first
    assert (first["before"], middle["before"]) == (None, puts[0].version)
    assert first["timestamp"] < middle["timestamp"] < newest["timestamp"]
    assert first["author"].endswith(">")
    assert {row["event"] for row in (newest, middle, first)} == {"put"}
    assert first["workflow"] == puts[0].workflow


def test_removal_and_rollback_are_rows_with_their_reasons(
    world: World, puts: list[PutWorkflow]
) -> None:
    remove_workflow(world.store, world.caller, "demo", reason="Not needed.")
    rollback_workflow(world.store, world.caller, "demo", text=puts[1].workflow, reason="It is.")

    back, removal, *_puts = list_history(world.store, "demo")

    assert (removal["event"], removal["reason"], removal["changes"]) == (
        "remove",
        "Not needed.",
        [],
    )
    assert (back["event"], back["reason"]) == ("rollback", "It is.")
    assert back["restored"] == puts[1].version
    assert {"kind": "changed", "path": "roles.writer.systemPrompt"} in back["changes"]


def test_limit_shortens_the_list_and_not_the_rows(world: World, puts: list[PutWorkflow]) -> None:
    rollback_workflow(world.store, world.caller, "demo", text=puts[0].version)

    assert list_history(world.store, "demo", limit=1) == list_history(world.store, "demo")[:1]
    assert list_history(world.store, "demo", limit=1)[0]["restored"] == puts[0].version
    assert len(list_history(world.store, "demo", limit=9)) == 4


def test_damaged_version_is_a_row_that_says_so(world: World, puts: list[PutWorkflow]) -> None:
    role = find_workflow(world.store, puts[1].workflow).workflow.roles["writer"]
    forge(world.store, REF, {1: holds(world.store, place(role), None)})

    newest, damaged, first = list_history(world.store, "demo")

    assert role in damaged["error"]
    assert "changes" not in newest
    assert "changes" not in damaged
    assert first["workflow"] == puts[0].workflow


def test_history_that_breaks_off_ends_in_a_row_that_says_why(
    world: World, puts: list[PutWorkflow]
) -> None:
    lose(world.store, puts[0].version)
    world.reopen()

    newest, last, end = list_history(world.store, "demo")

    assert (newest["event"], last["event"]) == ("put", "put")
    assert (last["before"], "changes" in last) == (puts[0].version, False)
    assert list(end) == ["error"]
    assert puts[0].version in end["error"]
