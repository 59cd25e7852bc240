"""Snapshots; test_damage.py tests snapshots of damaged stores."""

from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import ShaFile, Tree
from refusing import refuses
from store.story import AGENT, THREAD, WORKFLOW, Story, tell_small_story
from store.test_damage import rewritten

from uwf_git.model.builtin import AGENT_CONFIG, START, STEP
from uwf_git.store.nodes.tree import DamagedNode, add_nodes
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.snapshot import get_typed, read_snapshot


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
