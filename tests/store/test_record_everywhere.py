"""The same thread, recorded in several stores and under a clock that goes back."""

import itertools
from collections.abc import Callable

from fresh_store import fresh_store
from seal import START_MS
from store.story import Story, tell_small_story

from uwf_git.model.builtin import ATTEMPT, walk_closure
from uwf_git.store.store import Store
from uwf_git.store.threads.history import walk_history


def test_the_same_clock_gives_the_same_ids_in_every_store(store: Store) -> None:
    def ids(where: Store) -> list[str]:
        clock = itertools.count(START_MS, 1000).__next__
        head = tell_small_story(where, clock).head
        return [each.commit.oid for each in walk_history(where, head.commit)]

    assert ids(store) == ids(fresh_store())
    later = tell_small_story(fresh_store(), itertools.count(START_MS + 1000, 1000).__next__)
    assert later.head.commit not in ids(fresh_store())


def test_each_commit_reaches_all_that_it_names(store: Store, clock: Callable[[], int]) -> None:
    story = tell_small_story(store, clock)
    for snapshot in walk_history(store, story.head.commit):
        present = snapshot.get_present()
        roots = [snapshot.record.node, present.workflow, *present.binding.values()]
        roots += [present.last_attempt] if present.last_attempt else []
        reached = {node.hash for node in walk_closure(roots, snapshot.get_node)}
        assert snapshot.get_start().hash in reached
        if snapshot.record.event == "attempt":
            assert ATTEMPT in reached


def test_no_commit_is_older_than_the_one_before_it(store: Store) -> None:
    """Clocks are set back; git's walks by date would then lose commits."""
    times_ms = [5_000, 9_999, 1_000, 0, 12_000, 11_999]
    looks = iter(times_ms)
    story = Story(store, looks.__next__)
    for _step in times_ms[1:]:
        story.step()
    seconds = [each.commit.time_s for each in walk_history(store, story.head.commit)]
    assert seconds[::-1] == [5, 9, 9, 9, 12, 12]
