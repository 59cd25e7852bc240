from collections.abc import Callable

import pytest
from store.story import Story

from uwf_git.store.commit import DamagedCommit
from uwf_git.store.descent import descends, goes_on_from, has_object
from uwf_git.store.memory import MemoryObjects
from uwf_git.store.refs import Oid
from uwf_git.store.store import memory_store


@pytest.fixture
def story(clock: Callable[[], int]) -> Story:
    return Story(memory_store(), clock)


def test_a_commit_goes_on_from_those_behind_it_and_itself(story: Story) -> None:
    objects = story.store.objects
    start, end = story.head.commit, story.step().commit
    assert goes_on_from(objects, end, start)
    assert goes_on_from(objects, end, end)
    assert not goes_on_from(objects, start, end)


def test_two_ways_do_not_go_on_from_each_other(story: Story) -> None:
    objects = story.store.objects
    one, other = story.write_step("writer", "one"), story.write_step("writer", "other")
    assert not goes_on_from(objects, one, other)
    assert not goes_on_from(objects, other, one)


def test_unknown_commits_go_on_from_nothing(story: Story) -> None:
    objects, unknown = story.store.objects, Oid("0" * 40)
    assert not goes_on_from(objects, story.head.commit, unknown)
    assert not goes_on_from(objects, unknown, story.head.commit)
    # Nothing needs to be read to see that a commit is itself.
    assert goes_on_from(objects, unknown, unknown)


def test_commit_descends_from_itself_and_all_before_it(story: Story) -> None:
    tips = [story.head.commit, story.step().commit, story.step().commit]

    assert all(descends(story.store.objects, tips[-1], each) for each in tips)
    assert not descends(story.store.objects, tips[0], tips[1])


def test_missing_commit_on_the_way_is_told_to_who_asks_strictly() -> None:
    with pytest.raises(DamagedCommit, match="is missing"):
        descends(MemoryObjects(), Oid("2" * 40), Oid("1" * 40))


def test_object_is_here_or_not(story: Story) -> None:
    assert has_object(story.store.objects, story.head.commit)
    assert not has_object(story.store.objects, Oid("1" * 40))
