"""Which threads and workflows have diverged from what a remote last had."""

import os
from collections.abc import Callable

from commands.forging import forge, run_by
from store.story import THREAD, Story

from uwf_git.store.git.config import set_config
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.remotes import RemoteHeads
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import ACTIVE

REF = ACTIVE + THREAD


def test_only_another_history_is_divergence(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    first = story.head.commit
    second = story.step().commit
    (other, *_more) = forge(store, REF, {-1: run_by(b"Mallory <m@x>")})[-1:]
    for remote, seen in (("a", first), ("b", second), ("c", other), ("d", Oid("1" * 40))):
        set_config(os.path.join(store.path, "config"), f"remote.{remote}.url", "/nowhere")
        store.refs.create(f"refs/uwf/remotes/{remote}/threads/{THREAD}", seen)

    heads = RemoteHeads(open_store(store.path, environ=os.environ))

    assert list(heads.find_thread(THREAD, other)) == [("b", second)]
    assert list(heads.find_thread(THREAD, first)) == []
    assert list(heads.find_workflow("demo", first)) == []
