"""Snapshots; test_damage.py tests snapshots of damaged stores."""

from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob, ObjectID, ShaFile, Tree
from refusing import refuses
from store.loose import lose
from store.story import AGENT, THREAD, WORKFLOW, Story, tell_small_story
from store.test_damage import rewritten

from uwf_git.model.builtin import AGENT_CONFIG, START, STEP
from uwf_git.model.names import NodeHash
from uwf_git.model.workflow import NotAWorkflow, parse_graph, parse_role, parse_workflow
from uwf_git.store.nodes.tree import (
    FILE_MODE,
    TREE_MODE,
    DamagedNode,
    MissingNode,
    add_nodes,
    encode_node,
    find_blob,
)
from uwf_git.store.objects.objects import ObjectStore, get_tree
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.snapshot import (
    Snapshot,
    get_graph,
    get_role,
    get_schema,
    get_typed,
    get_workflow,
    read_snapshot,
)


def test_a_snapshot_says_what_happened(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    story.attempt("exit status 3", body="Because.\n\n  Twice.")
    snapshot = story.snapshot
    assert (snapshot.record.event, snapshot.record.attempt) == ("attempt", 1)
    assert snapshot.subject == "writer: attempt 1 failed: exit status 3"
    assert snapshot.body == "Because.\n\n  Twice."


def test_what_a_commit_has_is_given_by_name(store: Store, clock: Callable[[], int]) -> None:
    snapshot = Story(store, clock).snapshot
    assert snapshot.get_entry("nodes") == snapshot.nodes
    with refuses("damaged-commit", match="has no elsewhere"):
        snapshot.get_entry("elsewhere")


def test_nodes_are_given_checked(store: Store, clock: Callable[[], int]) -> None:
    snapshot = Story(store, clock).snapshot
    assert snapshot.get_node(WORKFLOW.hash) == WORKFLOW
    assert snapshot.get_node(AGENT.hash) == AGENT
    assert snapshot.get_start() == snapshot.get_head_node()
    assert snapshot.get_start().type == START


def test_an_older_commit_has_the_thread_as_it_was(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    before = story.head.commit
    story.step(state={"a": 1})
    assert read_snapshot(store, before).get_present().depth == 0
    assert story.snapshot.get_present().state == {"a": 1}


def test_reading_the_present_reads_no_node(store: Store, clock: Callable[[], int]) -> None:
    """A step costs the same at any depth: objects that it does not need may be missing."""
    story = tell_small_story(store, clock)
    snapshot = read_snapshot(open_store(store.path), story.head.commit)
    kept = {
        snapshot.commit.oid,
        snapshot.commit.tree.decode(),
        snapshot.get_entry("now.json").decode(),
    }
    for path in Path(store.path, "objects").glob("??/*"):
        if path.parent.name + path.name not in kept:
            path.unlink()
    assert read_snapshot(open_store(store.path), story.head.commit).get_present().depth == 2


def test_chain_through_what_is_no_step_is_damage(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)

    def change(tree: Tree, added: list[ShaFile]) -> None:
        growth = add_nodes(store.objects, tree[b"nodes"][1], [AGENT])
        tree[b"nodes"] = (0o040000, growth.nodes)
        added += growth.objects

    old = story.snapshot.record.node.encode()
    message = story.snapshot.commit.message.replace(old, AGENT.hash.encode())
    snapshot = rewritten(story, change, message=message)
    with refuses("damaged-commit", match=f"{AGENT.hash} in its chain, which is not a step"):
        list(snapshot.walk_chain())


def test_node_is_given_in_the_place_of_its_type_alone(
    store: Store, clock: Callable[[], int]
) -> None:
    story = Story(store, clock)
    story.step()
    snapshot = story.snapshot
    assert get_typed(snapshot, AGENT.hash, AGENT_CONFIG) == AGENT
    assert get_typed(snapshot, snapshot.record.node, STEP).type == STEP
    with pytest.raises(DamagedNode, match="StepNode"):
        get_typed(snapshot, AGENT.hash, STEP)
    with pytest.raises(DamagedNode, match="AgentConfig"):
        get_typed(snapshot, snapshot.record.node, AGENT_CONFIG)


def test_nested_thread_that_says_no_depth_is_at_none(
    store: Store, clock: Callable[[], int]
) -> None:
    snapshot = Story(store, clock).snapshot
    nested = snapshot._replace(record=snapshot.record._replace(parent_thread=THREAD))
    assert (snapshot.get_nesting(), nested.get_nesting()) == (0, 0)


# Workflows, roles, graphs and schemas: parsed once a blob, shared unchangeable, never mistaken.


def _blob_of(snapshot: Snapshot, name: NodeHash) -> ObjectID:
    found = find_blob(snapshot.objects, snapshot.nodes, name)
    assert found is not None
    return found


def test_definitions_are_what_the_nodes_say(store: Store, clock: Callable[[], int]) -> None:
    snapshot = Story(store, clock).snapshot
    workflow = get_workflow(snapshot, WORKFLOW.hash)

    assert workflow == parse_workflow(WORKFLOW)
    assert get_graph(snapshot, workflow.get_moderator()) == parse_graph(
        snapshot.get_node(workflow.get_moderator())
    )
    for name in workflow.roles.values():
        role = get_role(snapshot, name)
        assert role == parse_role(snapshot.get_node(name))
        schema = get_schema(snapshot, role.output_schema)
        assert schema == snapshot.get_node(role.output_schema).payload


def test_blob_is_parsed_once_for_all_commits_and_stores(
    store: Store, clock: Callable[[], int]
) -> None:
    story = Story(store, clock)
    first = get_workflow(story.snapshot, WORKFLOW.hash)
    story.step()
    oid = _blob_of(story.snapshot, WORKFLOW.hash).decode()
    reopened = read_snapshot(open_store(store.path), story.head.commit)
    # It is not even read.
    lose(store, oid)

    assert get_workflow(story.snapshot, WORKFLOW.hash) is first
    assert get_workflow(reopened, WORKFLOW.hash) is first


def test_no_reader_can_change_what_others_get(store: Store, clock: Callable[[], int]) -> None:
    snapshot = Story(store, clock).snapshot
    workflow = get_workflow(snapshot, WORKFLOW.hash)
    role = get_role(snapshot, next(iter(workflow.roles.values())))
    shared = [
        workflow.roles,
        workflow.agent_overrides,
        get_graph(snapshot, workflow.get_moderator()),
        get_schema(snapshot, role.output_schema),
    ]
    for each in shared:
        with pytest.raises(TypeError, match="cannot be changed"):
            each.clear()
    with pytest.raises(AttributeError):
        role.name = "other"  # type: ignore[misc]  # that is the point


def _with_blob(
    objects: ObjectStore, name: NodeHash, content: bytes
) -> Callable[[Tree, list[ShaFile]], None]:
    """Return a change that puts *content* where the node *name* is."""

    def change(tree: Tree, added: list[ShaFile]) -> None:
        blob = Blob.from_string(content)
        parts = [b"nodes", name[0].encode(), name[1].encode()]
        folders, place = [tree], tree
        for part in parts:
            copy = Tree()
            for entry in get_tree(objects, place[part][1]).items():
                copy[entry.path] = (entry.mode, entry.sha)
            folders.append(copy)
            place = copy
        place[f"{name[2:]}.json".encode()] = (FILE_MODE, blob.id)
        for part, above, below in zip(parts[::-1], folders[-2::-1], folders[:0:-1], strict=True):
            above[part] = (TREE_MODE, below.id)
        added += [blob, *folders[1:]]

    return change


def test_other_blob_under_a_known_name_is_not_taken_for_the_known_one(
    store: Store, clock: Callable[[], int]
) -> None:
    story = Story(store, clock)
    get_workflow(story.snapshot, WORKFLOW.hash)

    forged = rewritten(story, _with_blob(store.objects, WORKFLOW.hash, encode_node(AGENT)[1]))

    with pytest.raises(DamagedNode, match="holds other content"):
        get_workflow(forged, WORKFLOW.hash)


def test_known_blob_under_another_name_is_damage(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    workflow = get_workflow(story.snapshot, WORKFLOW.hash)
    role = next(iter(workflow.roles.values()))
    get_role(story.snapshot, role)
    content = encode_node(story.snapshot.get_node(role))[1]

    forged = rewritten(story, _with_blob(store.objects, workflow.get_moderator(), content))

    with pytest.raises(DamagedNode, match="holds other content"):
        get_graph(forged, workflow.get_moderator())
    assert get_role(forged, role).name


def test_what_is_no_workflow_is_told_every_time(store: Store, clock: Callable[[], int]) -> None:
    snapshot = Story(store, clock).snapshot
    for _ in range(2):
        with pytest.raises(NotAWorkflow):
            get_workflow(snapshot, AGENT.hash)
        with pytest.raises(MissingNode):
            get_workflow(snapshot, NodeHash("0000000000000"))
