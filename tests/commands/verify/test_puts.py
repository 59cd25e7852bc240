"""The chain of commits with nodes, common to workflows and to nodes put by hand."""

import pytest
from cas_nodes import NOWHERE, PERSON, add_misnamed, add_unchecked, new_caller
from commands.forging import WRITER, also, find_blob, forge, holds, place, says, tip_of, twin_role
from commands.world import DEMO, World
from dulwich.objects import Commit, ObjectID

from uwf_git.commands.cas import put_payload, put_schema
from uwf_git.commands.verify.history import Finding
from uwf_git.commands.verify.puts import check_puts
from uwf_git.commands.workflow.history import remove_workflow, rollback_workflow
from uwf_git.model.builtin import BUILTIN_NODES, FLOW, MODERATOR, TEXT, WORKFLOW, reference
from uwf_git.model.names import NodeHash, Oid
from uwf_git.model.node import build_node
from uwf_git.store.lookup import NODES_REF
from uwf_git.store.nodes import decode_node
from uwf_git.store.objects.objects import get_blob
from uwf_git.store.store import Store
from uwf_git.store.workflows import SourceFiles, add_version


@pytest.fixture
def notes(store: Store) -> list[NodeHash]:
    """Put three notes, one a commit."""
    caller = new_caller()
    return [put_payload(store, caller, "Text", f"note {number}").hash for number in range(3)]


def found(store: Store, *, known: Oid | None = None) -> list[Finding]:
    return list(check_puts(store, [(NODES_REF, tip_of(store, NODES_REF), known)]))


def told(store: Store, *, known: Oid | None = None) -> list[str]:
    return [each.message for each in found(store, known=known)]


def test_removed_node_is_reported_where_none_may_go(store: Store, notes: list[NodeHash]) -> None:
    forge(store, NODES_REF, {-1: holds(store, place(notes[0], ".md"), None)})

    assert told(store) == [f"node {notes[0]} was in the commit before and is missing"]


def test_only_what_is_not_known_is_looked_at(store: Store, notes: list[NodeHash]) -> None:
    before = tip_of(store, NODES_REF)
    oids = forge(store, NODES_REF, {0: says("Uwf-Event: put", "Uwf-Event: pot")})

    assert told(store, known=oids[0]) == []
    assert told(store, known=oids[-1]) == []
    assert told(store, known=before) == [
        f"{oids[-1]} does not descend from {before}, where {NODES_REF} was",
        "Uwf-Event is pot, and must be put",
    ]


def test_each_thing_that_git_or_uwf_would_not_write_is_reported(
    store: Store, notes: list[NodeHash]
) -> None:
    def strange(commit: Commit) -> None:
        commit.parents = [*commit.parents, *commit.parents]
        commit.commit_time = commit.author_time = 1

    change = also(
        strange,
        says("\n\nUwf-Event: put", "\n\nhello\n\nUwf-Event: put"),
        says("Uwf-Format: 2\n", ""),
        holds(store, "junk", b"x"),
    )
    oids = forge(store, NODES_REF, {1: change})

    messages = [each.message for each in found(store) if each.commit == oids[1]]
    assert [each.replace(oids[1], "C")[:50] for each in messages] == [
        "commit C has a line between subject and trailers t",
        "the commit has 2 parents, and may have one",
        messages[2][:50],
        "the commit has junk, which does not belong there",
        "the message of commit C has no number in Uwf-Forma",
    ]
    assert messages[2].startswith("its date, 1, is before that of its parent, ")


def test_history_that_breaks_off_is_reported(store: Store, notes: list[NodeHash]) -> None:
    def cut(commit: Commit) -> None:
        commit.parents = [ObjectID(b"1" * 40)]

    forge(store, NODES_REF, {1: cut})

    assert told(store) == [f"the history of {NODES_REF} breaks off: commit {'1' * 40} is missing"]


def test_nodes_that_no_put_would_take_are_reported(store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
    before = tip_of(store, NODES_REF)
    wrong = add_unchecked(store, schema, {"name": 5})
    lone = add_unchecked(store, schema, {"name": "Ada", "friend": NOWHERE})
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    messages = told(store)
    assert told(store, known=before) == messages
    assert f"node {lone} refers to {NOWHERE}, which is not in the same commit" in messages
    assert f"node {wrong} breaks its schema at name: 5 is not of type 'string'" in messages
    assert any(each.startswith(f"node {NOWHERE} holds other content") for each in messages)


# Versions of a workflow with false trailers or files.

REF = "refs/workflows/demo"


@pytest.fixture
def workflow(world: World) -> NodeHash:
    """Put a workflow of two versions."""
    world.put()
    return world.put(DEMO.replace("Write until", "Write and write until")).workflow


def told_workflow(store: Store, *, name: str = "demo", known: Oid | None = None) -> list[str]:
    found = check_puts(store, [(f"refs/workflows/{name}", tip_of(store, REF), known)])
    return [each.message for each in found]


def test_another_prompt_under_the_same_name_does_not_replace_what_is_here(
    world: World, workflow: NodeHash
) -> None:
    here = tip_of(world.store, REF)
    # A history in itself without a fault, which a fetch would take over.
    *_, there = forge(world.store, REF, dict.fromkeys((0, 1), twin_role(world.store)))
    assert world.store.refs.advance(REF, seen=there, to=here)

    first, second = check_puts(world.store, [(REF, there, None)])
    assert first.message == second.message
    assert first.message.startswith(f"node {WRITER} has two payloads")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Uwf-Workflow-Name: demo", "Uwf-Workflow-Name: other", "is other, and must be demo"),
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

    assert any(message in each for each in told_workflow(world.store))
    assert told_workflow(world.store, known=Oid(tip_of(world.store, REF))) == []


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
        assert told_workflow(world.store, known=known) == []


def test_removal_that_changes_something_is_reported(world: World, workflow: NodeHash) -> None:
    remove_workflow(world.store, world.caller, "demo")
    forge(world.store, REF, {-1: holds(world.store, "workflow.yaml", b"name: other")})

    assert told_workflow(world.store) == [
        "it removes a version, but its tree differs from the one before"
    ]


@pytest.mark.parametrize("is_known", [True, False])
def test_rollback_to_what_never_was_is_reported(
    world: World, workflow: NodeHash, *, is_known: bool
) -> None:
    known = tip_of(world.store, REF) if is_known else None
    rollback_workflow(world.store, world.caller, "demo")
    forge(world.store, REF, {-1: holds(world.store, "workflow.yaml", b"name: other")})

    assert told_workflow(world.store, known=known) == [
        "it restores a version that does not exist before it"
    ]


@pytest.mark.parametrize("other", ["8FWKR3TN5V1QA", TEXT])
def test_invalid_workflow_is_reported(other: str, world: World, workflow: NodeHash) -> None:
    forge(world.store, REF, {-1: says(f"Uwf-Workflow: {workflow}", f"Uwf-Workflow: {other}")})

    assert told_workflow(world.store)[0].startswith(f"Uwf-Workflow is {other}")


def test_name_has_to_be_that_of_the_ref(world: World, workflow: NodeHash) -> None:
    messages = told_workflow(world.store, name="other")

    assert f"node {workflow} is named 'demo', and the ref 'other'" in messages
    assert any(
        "refs/workflows/-x cannot name a workflow: " in each
        for each in told_workflow(world.store, name="-x")
    )


@pytest.mark.parametrize("name", ["workflow.yaml", "head.json", "nodes"])
def test_missing_file_is_reported(name: str, world: World, workflow: NodeHash) -> None:
    forge(world.store, REF, {0: holds(world.store, name, None)})

    assert told_workflow(world.store) == [f"the commit has no {name}"]


def test_file_of_another_mode_is_reported(world: World, workflow: NodeHash) -> None:
    forge(world.store, REF, {-1: holds(world.store, "workflow.yaml", b"x", mode=0o100755)})

    told = told_workflow(world.store)
    assert told[0] == "workflow.yaml has mode 100755, and must have 100644"


def test_head_that_is_not_the_workflow_is_reported(world: World, workflow: NodeHash) -> None:
    forge(world.store, REF, {-1: holds(world.store, "head.json", b"{}")})

    assert told_workflow(world.store) == [f"head.json is not the file of node {workflow}"]


def test_every_version_has_its_whole_closure(world: World, workflow: NodeHash) -> None:
    forge(world.store, REF, {-1: holds(world.store, place(TEXT), None)})
    missing = f"the commit has no built-in schema Text, {TEXT}"
    assert told_workflow(world.store) == [missing]

    role = roles_of(world, workflow)[0]
    forge(world.store, REF, {-1: holds(world.store, place(role), None)})
    assert told_workflow(world.store) == [
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

    (found,) = told_workflow(world.store)

    assert message in found
