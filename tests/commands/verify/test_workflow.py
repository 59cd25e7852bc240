"""Versions of a workflow with false trailers or files."""

import pytest
from commands.forging import find_blob, forge, holds, place, says, tip_of
from commands.world import DEMO, World

from uwf_git.commands.verify.puts import check_puts
from uwf_git.commands.workflow.history import remove_workflow, rollback_workflow
from uwf_git.model.builtin import BUILTIN_NODES, FLOW, TEXT, WORKFLOW, reference
from uwf_git.model.names import NodeHash
from uwf_git.model.node import build_node
from uwf_git.store.nodes.tree import decode_node
from uwf_git.store.objects.objects import get_blob
from uwf_git.store.oid import Oid
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
    assert told(world.store) == []

    role = roles_of(world, workflow)[0]
    forge(world.store, REF, {-1: holds(world.store, place(role), None)})
    assert told(world.store) == [
        f"node {workflow} refers to {role}, which is not in the same commit"
    ]


def roles_of(world: World, workflow: NodeHash) -> list[str]:
    blob = find_blob(world.store, tip_of(world.store, REF), place(workflow))
    payload = decode_node(workflow, get_blob(world.store.objects, blob)).payload
    return [role["$ref"] for role in payload["roles"].values()]


@pytest.mark.parametrize(
    ("places", "messages"), [(["0"], []), (["0", "2"], ["is not a flow that this uwf can read"])]
)
def test_a_flow_whose_table_has_a_gap_is_reported(
    places: list[str], messages: list[str], world: World
) -> None:
    agent = {"type": "agent", "agentId": "a"}
    flow = build_node(FLOW, {"nodes": dict.fromkeys(places, agent)}, timestamp=0)
    payload = {"name": "demo", "description": "", "roles": {}, "flow": reference(flow.hash)}
    node = build_node(WORKFLOW, payload, timestamp=0)
    add_version(
        world.store,
        None,
        added=("demo", node, [flow, *BUILTIN_NODES]),
        source=SourceFiles(b"", {}),
        signing=world.caller.signing(world.store),
    )
    found = told(world.store)
    assert len(found) == len(messages)
    assert all(message in each for message, each in zip(messages, found, strict=True))
