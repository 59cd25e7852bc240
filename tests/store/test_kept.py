from collections.abc import Callable

from store.story import THREAD, Story

from uwf_git.store.kept import keep_commit, let_go, list_kept, list_kept_threads
from uwf_git.store.store import Store


def test_kept_commit_is_listed_until_it_is_let_go(
    store: Store, clock: Callable[[], int], git: Callable[..., str]
) -> None:
    story = Story(store, clock)
    lost = story.write_step("writer", "nobody saw this")
    keep_commit(store, THREAD, lost)
    keep_commit(store, THREAD, lost)
    git("gc", "--quiet", "--prune=now", cwd=store.path)
    assert list_kept(store, THREAD) == [lost]
    assert git("cat-file", "-t", lost, cwd=store.path) == "commit\n"

    let_go(store, THREAD, lost)
    let_go(store, THREAD, lost)
    assert list_kept(store, THREAD) == []


def test_nothing_is_kept_for_a_thread_of_which_nobody_has_heard(memory: Store) -> None:
    assert list_kept(memory, THREAD) == []


def test_threads_for_which_something_is_kept_are_listed(
    store: Store, memory: Store, clock: Callable[[], int], git: Callable[..., str]
) -> None:
    for each in (store, memory):
        story = Story(each, clock)
        assert list_kept_threads(each) == []
        keep_commit(each, THREAD, story.write_step("writer", "nobody saw this"))
        assert list_kept_threads(each) == [THREAD]
    git("pack-refs", "--all", cwd=store.path)
    assert list_kept_threads(store) == [THREAD]
