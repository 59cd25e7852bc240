"""Recording; what must hold on every kind of store is in test_contract.py."""

import itertools
from collections.abc import Callable

import pytest
from refusing import refuses
from store.story import Story, list_tree, signed, tell_small_story

from uwf_git.model.builtin import STEP
from uwf_git.model.event_folds import Cause, Words
from uwf_git.model.event_rules import apply_event
from uwf_git.model.node import build_node
from uwf_git.store.nodes import DamagedNode
from uwf_git.store.store import Store
from uwf_git.store.threads.history import (
    NewCommit,
    Snapshot,
    read_standing,
    record_next,
    record_start,
    walk_history,
)


def files(snapshot: Snapshot) -> dict[str, str]:
    lines = list_tree(snapshot.objects, snapshot.commit.tree)
    return {
        path: mode_and_oid for mode_and_oid, _tab, path in (line.partition("\t") for line in lines)
    }


def test_nothing_ever_leaves_the_tree_of_a_thread(store: Store, clock: Callable[[], int]) -> None:
    story = tell_small_story(store, clock)
    trees = [
        {item for item in files(snapshot).items() if item[0].startswith("nodes/")}
        for snapshot in walk_history(store, story.head.commit)
    ]
    for newer, older in itertools.pairwise(trees):
        assert older <= newer


def test_folding_the_history_gives_the_present(store: Store, clock: Callable[[], int]) -> None:
    story = tell_small_story(store, clock)
    snapshots = list(walk_history(store, story.head.commit))[::-1]
    standing = read_standing(snapshots[0])
    for snapshot in snapshots[1:]:
        record = snapshot.record
        cause = Cause(snapshot.get_head_node(), record.role, record.agent)
        if record.event == "attempt":
            last = snapshot.get_present().last_attempt
            assert last is not None
            cause = cause._replace(node=snapshot.get_node(last))
        standing = apply_event(standing, record.event, cause)
        standing = standing._replace(commit=snapshot.commit.oid)
        assert read_standing(snapshot) == standing


def test_a_name_with_another_payload_stops_the_step(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    before = story.snapshot
    start = before.get_start()
    twin = build_node(start.type, {**start.payload, "prompt": "another"}, timestamp=0)
    transition = NewCommit(
        before.record, Words("text"), before.get_present(), (twin._replace(hash=start.hash),)
    )
    with refuses("node-collision", match=start.hash):
        record_next(store, before, transition, signed(0))


def test_a_thread_cannot_begin_without_its_start(store: Store, clock: Callable[[], int]) -> None:
    before = Story(store, clock).snapshot
    transition = NewCommit(before.record, Words("text"), before.get_present())
    with pytest.raises(ValueError, match="needs a StartNode"):
        record_start(store, transition, signed(0))


def test_a_node_that_could_not_be_read_again_is_not_recorded(
    store: Store, clock: Callable[[], int]
) -> None:
    story = Story(store, clock)
    wrong = build_node(STEP, {"role": "writer"}, timestamp=0)
    transition = NewCommit(
        story.snapshot.record, Words("x"), story.snapshot.get_present(), nodes=(wrong,)
    )
    with pytest.raises(DamagedNode, match=wrong.hash):
        record_next(store, story.snapshot, transition, signed(clock()))
