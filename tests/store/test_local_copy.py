from collections.abc import Callable
from pathlib import Path

from store.story import Story

from uwf_git.store.incoming import receive_objects
from uwf_git.store.local_copy import copy_objects
from uwf_git.store.object_walk import list_needed
from uwf_git.store.store import create_store


def test_a_thread_is_whole_where_it_was_copied_to(tmp_path: Path, clock: Callable[[], int]) -> None:
    source, target = (create_store(str(tmp_path / f"{name}.git")) for name in "ab")
    tip = Story(source, clock).step().commit
    needed = list_needed(source.objects, tip, set())
    for some in (needed[:5], [], needed):
        with receive_objects(target) as incoming:
            copy_objects(source.objects, some, incoming)
            incoming.take_in()
    assert list_needed(target.objects, tip, set()) == needed
