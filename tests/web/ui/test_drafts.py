"""New threads and drafts of workflows, over a store and without a server."""

from commands.draft.test_judge import GOOD
from commands.world import World, says
from refusing import refuses
from web.ui.asking import Ask

from uwf_git.commands.draft import DraftRequest, start_draft
from uwf_git.model.names import ThreadId


def test_workflows_are_registered_or_shipped(ask: Ask, world: World) -> None:
    world.put()

    rows = {row["name"]: row["isShipped"] for row in ask("GET", "/api/workflows")["workflows"]}

    assert rows["demo"] is False
    assert rows["review-loop"] is True
    assert "writer" in ask("GET", "/api/workflows/demo/picture")
    assert ask("GET", "/api/workflows/review-loop")["name"] == "review-loop"


def _draft(world: World, text: str) -> ThreadId:
    thread = world.new_id()
    start_draft(world.store, world.caller, DraftRequest("A letter", "human"), thread=thread)
    meta = {"name": "letter", "why": "simple", "questions": []}
    world.step(thread, says(meta, text), command="nobody")
    return thread


def test_draft_is_put_as_it_was_shown(ask: Ask, world: World) -> None:
    thread = _draft(world, GOOD)
    seen = ask("GET", f"/api/drafts/{thread}")
    assert (seen["name"], seen["file"], seen["canPut"]) == ("letter", GOOD, True)
    assert "<svg" in ask("GET", f"/api/drafts/{thread}/picture")

    with refuses("draft-changed"):
        ask("POST", f"/api/drafts/{thread}/put", {"digest": "0" * 64})
    assert not seen["isPut"]
    put = ask("POST", f"/api/drafts/{thread}/put", {"digest": seen["digest"]})

    assert ask("GET", f"/api/drafts/{thread}")["isPut"]
    assert ask("GET", "/api/workflows/letter")["workflow"] == put["workflow"]


def test_draft_that_names_a_command_is_never_put(ask: Ask, world: World) -> None:
    thread = _draft(world, GOOD + "agentOverrides: {writer: rm -rf x}\n")
    seen = ask("GET", f"/api/drafts/{thread}")
    assert not seen["canPut"]
    assert seen["problems"]
    with refuses("draft-not-fit"):
        ask("POST", f"/api/drafts/{thread}/put", {"digest": seen["digest"]})
    with refuses("draft-not-fit"):
        ask("GET", f"/api/drafts/{thread}/picture")
