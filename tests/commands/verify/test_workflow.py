"""Versions of a workflow with false trailers or files."""

import pytest
from commands.forging import find_blob, forge, holds, place, says, tip_of
from commands.world import DEMO, World

from uwf_git.commands.verify.puts import check_puts
from uwf_git.commands.workflow.history import remove_workflow, rollback_workflow
from uwf_git.model.builtin import BUILTIN_NODES, FLOW, MODERATOR, TEXT, WORKFLOW, reference
from uwf_git.model.names import NodeHash, Oid
from uwf_git.model.node import build_node
from uwf_git.store.nodes import decode_node
from uwf_git.store.objects.objects import get_blob
from uwf_git.store.store import Store
from uwf_git.store.workflows import SourceFiles, add_version

REF = "refs/workflows/demo"


@pytest.fixture
def workflow(world: World) -> NodeHash:
    """Put a workflow of two versions."""
    world.put()
    return world.put(DEMO.replace("Write until", "Write and write until")).workflow


def told(store: Store, *, name: str = "demo", known: Oid | None = None) -> list[str]:
    found = check_puts(store, [(f"refs/workflows/{name}", tip_of(store, REF), known)])
    return [each.message for each in found]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "Uwf-Workflow-Name: demo",
            "Uwf-Workflow-Name: other",
            "is other, and must be demo",
        ),
        ("Uwf-Workflow: ", "Uwf-Workflow: x", "the commit names no workflow"),
        ("Uwf-Event: put", "Uwf-Event: step", "must be put or rollback or remove"),
        ("Uwf-Event: put", "Uwf-Event: remove", "it removes a version, but its tree differs"),
        ("Uwf-Event: put", "Uwf-Event: rollback", "it restores a version that does not exist"),
    ],
)
def test_trailer_that_lies_is_reported(
    old: str, new: str, message: str, world: World, workflow: NodeHash
) -> None:
    forge(world.store, REF, {0: says(old, new)})

    assert any(message in each for each in told(world.store))
    assert told(world.store, known=Oid(tip_of(world.store, REF))) == []


def test_removals_and_rollbacks_as_they_are_made_are_whole(
    world: World, workflow: NodeHash
) -> None:
    first = tip_of(world.store, REF)
    rollback_workflow(world.store, world.caller, "demo")
    second = tip_of(world.store, REF)
    remove_workflow(world.store, world.caller, "demo")
    third = tip_of(world.store, REF)
    rollback_workflow(world.store, world.caller, "demo")

    for known in (None, first, second, third):
        assert told(world.store, known=known) == []


def test_removal_that_changes_something_is_reported(world: World, workflow: NodeHash) -> None:
    remove_workflow(world.store, world.caller, "demo")
    forge(world.store, REF, {-1: holds(world.store, "workflow.yaml", b"name: other")})

    assert told(world.store) == ["it removes a version, but its tree differs from the one before"]


@pytest.mark.parametrize("is_known", [True, False])
def test_rollback_to_what_never_was_is_reported(
    world: World, workflow: NodeHash, *, is_known: bool
) -> None:
    known = tip_of(world.store, REF) if is_known else None
    rollback_workflow(world.store, world.caller, "demo")
    forge(world.store, REF, {-1: holds(world.store, "workflow.yaml", b"name: other")})

    assert told(world.store, known=known) == ["it restores a version that does not exist before it"]


@pytest.mark.parametrize("other", ["8FWKR3TN5V1QA", TEXT])
def test_invalid_workflow_is_reported(other: str, world: World, workflow: NodeHash) -> None:
    forge(world.store, REF, {-1: says(f"Uwf-Workflow: {workflow}", f"Uwf-Workflow: {other}")})

    messages = told(world.store)
    assert messages[0].startswith(f"Uwf-Workflow is {other}")


def test_name_has_to_be_that_of_the_ref(world: World, workflow: NodeHash) -> None:
    messages = told(world.store, name="other")

    assert f"node {workflow} is named 'demo', and the ref 'other'" in messages
    assert any(
        "refs/workflows/-x cannot name a workflow: " in each
        for each in told(world.store, name="-x")
    )


@pytest.mark.parametrize("name", ["workflow.yaml", "head.json", "nodes"])
def test_missing_file_is_reported(name: str, world: World, workflow: NodeHash) -> None:
    forge(world.store, REF, {0: holds(world.store, name, None)})

    assert told(world.store) == [f"the commit has no {name}"]


def test_head_that_is_not_the_workflow_is_reported(world: World, workflow: NodeHash) -> None:
    forge(world.store, REF, {-1: holds(world.store, "head.json", b"{}")})

    assert told(world.store) == [f"head.json is not the file of node {workflow}"]


def test_every_version_has_its_whole_closure(world: World, workflow: NodeHash) -> None:
    forge(world.store, REF, {-1: holds(world.store, place(TEXT), None)})
    missing = f"the commit has no built-in schema Text, {TEXT}"
    assert told(world.store) == [missing]

    role = roles_of(world, workflow)[0]
    forge(world.store, REF, {-1: holds(world.store, place(role), None)})
    assert told(world.store) == [
        f"node {workflow} refers to {role}, which is not in the same commit",
        missing,
    ]


def roles_of(world: World, workflow: NodeHash) -> list[str]:
    blob = find_blob(world.store, tip_of(world.store, REF), place(workflow))
    payload = decode_node(workflow, get_blob(world.store.objects, blob)).payload
    return [role["$ref"] for role in payload["roles"].values()]


AGENT = {"type": "agent", "agentId": "a"}
GHOST = [{"to": "ghost", "condition": "depth > 2"}, {"to": "$END", "condition": None}]


@pytest.mark.parametrize(
    ("part", "payload", "message"),
    [
        ("flow", {"nodes": {"0": AGENT}}, "leads to 'a', which is no role of it"),
        ("flow", {"nodes": {"0": AGENT, "2": AGENT}}, "is not a flow that this uwf can read"),
        (
            "moderator",
            {"graph": [{"from": "$START", "transitions": GHOST}]},
            "leads to 'ghost', which is no role of it",
        ),
    ],
)
def test_ways_that_lead_nowhere_are_reported(
    part: str, payload: dict[str, object], message: str, world: World
) -> None:
    ways = build_node(FLOW if part == "flow" else MODERATOR, payload, timestamp=0)
    rules = {"name": "demo", "description": "", "roles": {}, part: reference(ways.hash)}
    add_version(
        world.store,
        None,
        added=("demo", build_node(WORKFLOW, rules, timestamp=0), [ways, *BUILTIN_NODES]),
        source=SourceFiles(b"", {}),
        signing=world.caller.signing(world.store),
    )

    (found,) = told(world.store)

    assert message in found
