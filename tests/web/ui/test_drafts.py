"""New threads and drafts of workflows, over a store and without a server."""

import json
from collections.abc import Callable
from unittest import mock

from commands.draft.test_judge import GOOD
from commands.world import World, says
from refusing import refuses
from web.ui.asking import Ask

from uwf_git.commands.workflow.history import remove_workflow
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId


def test_workflows_are_registered_or_shipped(ask: Ask, world: World) -> None:
    world.put()

    rows = {row["name"]: row["isShipped"] for row in ask("GET", "/api/workflows")["workflows"]}

    assert rows["demo"] is False
    assert rows["review-loop"] is True
    assert "writer" in ask("GET", "/api/workflows/demo/picture")
    assert ask("GET", "/api/workflows/review-loop")["name"] == "review-loop"


def _begin(ask: Ask, start_driver: mock.Mock) -> ThreadId:
    start_driver.side_effect = [Refused("it waits for a person", code="driver-ended", hint="wait")]
    human = ask("GET", "/api/agents")["agents"][-1]["id"]
    begun = ask("POST", "/api/drafts", {"wish": "A letter", "agent": human})
    assert begun["refused"]["hint"] == "wait"
    return ThreadId(begun["thread"])


def _draft(world: World, thread: ThreadId, text: str) -> None:
    meta = {"name": "letter", "why": "simple", "questions": []}
    world.step(thread, says(meta, text), command="nobody")


def test_draft_is_put_as_it_was_shown(
    ask: Ask, world: World, start_driver: mock.Mock, golden: Callable[[str, str], None]
) -> None:
    thread = _begin(ask, start_driver)
    begun = ask("GET", f"/api/drafts/{thread}")
    _draft(world, thread, GOOD)
    seen = ask("GET", f"/api/drafts/{thread}")
    golden("web/draft.json", json.dumps([begun, seen], indent=1))
    assert "<svg" in ask("GET", f"/api/drafts/{thread}/picture")

    with refuses("draft-changed"):
        ask("POST", f"/api/drafts/{thread}/put", {"digest": "0" * 64})
    assert not seen["isPut"]
    put = ask("POST", f"/api/drafts/{thread}/put", {"digest": seen["digest"]})

    assert ask("GET", f"/api/drafts/{thread}")["isPut"]
    assert ask("GET", "/api/workflows/letter")["workflow"] == put["workflow"]
    remove_workflow(world.store, world.caller, "letter")
    assert not ask("GET", f"/api/drafts/{thread}")["isPut"]


def test_draft_that_names_a_command_is_never_put(
    ask: Ask, world: World, start_driver: mock.Mock
) -> None:
    thread = _begin(ask, start_driver)
    _draft(world, thread, GOOD + "agentOverrides: {writer: rm -rf x}\n")
    seen = ask("GET", f"/api/drafts/{thread}")
    assert not seen["canPut"]
    assert seen["problems"]
    with refuses("draft-not-fit"):
        ask("POST", f"/api/drafts/{thread}/put", {"digest": seen["digest"]})
    with refuses("draft-not-fit"):
        ask("GET", f"/api/drafts/{thread}/picture")
