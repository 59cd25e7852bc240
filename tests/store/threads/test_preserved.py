from collections.abc import Callable

from store.story import THREAD, Story

from uwf_git.store.store import Store
from uwf_git.store.threads.history import (
    list_preserved,
    list_preserved_threads,
    preserve_commit,
    release,
)


def test_kept_commit_is_listed_until_it_is_let_go(
    store: Store, clock: Callable[[], int], git: Callable[..., str]
) -> None:
    story = Story(store, clock)
    lost = story.write_step("writer", "nobody saw this")
    preserve_commit(store, THREAD, lost)
    preserve_commit(store, THREAD, lost)
    git("gc", "--quiet", "--prune=now", cwd=store.path)
    assert list_preserved(store, THREAD) == [lost]
    assert git("cat-file", "-t", lost, cwd=store.path) == "commit\n"

    release(store, THREAD, lost)
    release(store, THREAD, lost)
    assert list_preserved(store, THREAD) == []


def test_unknown_thread_has_no_preserved_commits(store: Store) -> None:
    assert list_preserved(store, THREAD) == []


def test_threads_for_which_something_is_kept_are_listed(
    store: Store, clock: Callable[[], int], git: Callable[..., str]
) -> None:
    story = Story(store, clock)
    assert list_preserved_threads(store) == []
    preserve_commit(store, THREAD, story.write_step("writer", "nobody saw this"))
    assert list_preserved_threads(store) == [THREAD]
    git("pack-refs", "--all", cwd=store.path)
    assert list_preserved_threads(store) == [THREAD]
