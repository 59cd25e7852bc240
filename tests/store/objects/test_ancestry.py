from collections.abc import Callable

import pytest
from dulwich.object_store import MemoryObjectStore
from fresh_store import fresh_store
from refusing import refuses
from store.story import Story

from uwf_git.store.objects.commit import descends, is_descendant
from uwf_git.store.objects.objects import has_object
from uwf_git.store.oid import Oid


@pytest.fixture
def story(clock: Callable[[], int]) -> Story:
    return Story(fresh_store(), clock)


def test_a_commit_descends_from_its_ancestors_and_itself(story: Story) -> None:
    objects = story.store.objects
    start, end = story.head.commit, story.step().commit
    assert is_descendant(objects, end, start)
    assert is_descendant(objects, end, end)
    assert not is_descendant(objects, start, end)


def test_diverged_commits_do_not_descend_from_each_other(story: Story) -> None:
    objects = story.store.objects
    one, other = story.write_step("writer", "one"), story.write_step("writer", "other")
    assert not is_descendant(objects, one, other)
    assert not is_descendant(objects, other, one)


def test_unknown_commits_descend_from_nothing(story: Story) -> None:
    objects, unknown = story.store.objects, Oid("0" * 40)
    assert not is_descendant(objects, story.head.commit, unknown)
    assert not is_descendant(objects, unknown, story.head.commit)
    # Nothing needs to be read to see that a commit is itself.
    assert is_descendant(objects, unknown, unknown)


def test_commit_descends_from_itself_and_all_before_it(story: Story) -> None:
    tips = [story.head.commit, story.step().commit, story.step().commit]

    assert all(descends(story.store.objects, tips[-1], each) for each in tips)
    assert not descends(story.store.objects, tips[0], tips[1])


def test_missing_commit_on_the_way_is_an_error_for_descends() -> None:
    with refuses("damaged-commit", match="is missing"):
        descends(MemoryObjectStore(), Oid("2" * 40), Oid("1" * 40))


def test_object_is_here_or_not(story: Story) -> None:
    assert has_object(story.store.objects, story.head.commit)
    assert not has_object(story.store.objects, Oid("1" * 40))
