from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from store.story import Story

from uwf_git.store.objects.commit import list_new_objects
from uwf_git.store.remotes.incoming import copy_objects, receive_objects
from uwf_git.store.store import create_store


def test_a_thread_is_whole_where_it_was_copied_to(tmp_path: Path, clock: Callable[[], int]) -> None:
    source, target = (create_store(str(tmp_path / f"{name}.git")) for name in "ab")
    tip = Story(source, clock).step().commit
    needed = list_new_objects(source.objects, tip, set())
    for some in (needed[:5], [], needed):
        with receive_objects(target) as incoming:
            copy_objects(source.objects, some, incoming)
            with ExitStack() as until_needed:
                incoming.move_into_store(until_needed)
    assert list_new_objects(target.objects, tip, set()) == needed
