"""Snapshots; test_damage.py tests snapshots of damaged stores."""

from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob, ShaFile, Tree
from store.story import AGENT, WORKFLOW, Story, tell_small_story
from store.test_damage import rewritten

from uwf_git.model.names import NodeHash
from uwf_git.model.workflow import NotAWorkflow
from uwf_git.store.nodes import (
    FILE_MODE,
    TREE_MODE,
    DamagedNode,
    MissingNode,
    encode_node,
)
from uwf_git.store.objects.objects import ObjectStore, get_tree
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.history import (
    get_graph,
    get_role,
    get_schema,
    get_workflow,
    read_snapshot,
)

# Workflows, roles, graphs and schemas: parsed once a blob, shared unchangeable, never mistaken.


def test_no_reader_can_change_what_others_get(store: Store, clock: Callable[[], int]) -> None:
    snapshot = Story(store, clock).snapshot
    workflow = get_workflow(snapshot, WORKFLOW.hash)
    assert get_workflow(snapshot, WORKFLOW.hash) is workflow
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


def test_turn_began_where_its_record_says(store: Store, clock: Callable[[], int]) -> None:
    snapshot = Story(store, clock).snapshot
    paused = snapshot._replace(record=snapshot.record._replace(turn="1" * 40))
    assert (snapshot.turn_start, paused.turn_start) == (snapshot.commit.oid, "1" * 40)


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
