"""Heads; what must hold on every kind of store is in test_contract.py."""

from collections.abc import Callable
from pathlib import Path

import pytest
from refusing import refuses
from store.story import Story

from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.refs import BadPackedRefs, Refs
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import (
    ACTIVE,
    ARCHIVE,
    Head,
    NoSuchThread,
    find_head,
    get_head,
    list_threads,
    resolve_thread,
)

ONE, OTHER = Oid("1" * 40), Oid("2" * 40)


def with_threads(store: Store, *names: str, archived: tuple[str, ...] = ()) -> Store:
    for name in names:
        store.refs.create(ACTIVE + name, ONE)
    for name in archived:
        store.refs.create(ARCHIVE + name, ONE)
    return store


A1, A2, B1 = (f"01J7K9M2XNPQR5VWBCDF8G3H{end}" for end in ("A1", "A2", "B1"))


@pytest.mark.parametrize(
    ("text", "found"),
    [(A1, A1), (A1.lower(), A1), (A1[:-1] + "I", A1), (A2[:25] + "2", A2), (B1[:-1], B1)],
)
def test_a_thread_is_meant_by_its_id_or_a_beginning(store: Store, text: str, found: str) -> None:
    with_threads(store, A1, A2, archived=(B1,))
    assert resolve_thread(store, text) == found


def test_ambiguous_prefix_names_some_of_many_matches(store: Store) -> None:
    with_threads(store, *(f"01J000{number:020d}" for number in range(25)))
    with refuses("ambiguous-thread", match=r"^25 threads begin with 01J: .* and 15 more$"):
        resolve_thread(store, "01J")


@pytest.mark.parametrize("text", [B1, "02", B1[:10] + "0"])
def test_unknown_thread_is_named(store: Store, text: str) -> None:
    with_threads(store, A1)
    with pytest.raises(NoSuchThread, match=text):
        resolve_thread(store, text)


class _Interrupted(Refs):
    """Refs to which something happens between two looks."""

    def __init__(self, git_dir: str, happens: Callable[["_Interrupted"], object]) -> None:
        super().__init__(git_dir, durable=False)
        self.happens: Callable[[_Interrupted], object] | None = happens

    def find(self, name: str) -> Oid | None:
        found = super().find(name)
        self._happen()
        return found

    def names(self, prefix: str) -> list[str]:
        found = super().names(prefix)
        self._happen()
        return found

    def _happen(self) -> None:
        happens, self.happens = self.happens, None
        if happens is not None:
            happens(self)


def ending(refs: Refs) -> None:
    assert Refs.move(refs, ACTIVE + A1, seen=ONE, to_name=ARCHIVE + A1, to=OTHER)


@pytest.mark.parametrize("look", [find_head, resolve_thread])
def test_a_thread_that_ends_while_it_is_looked_for_is_found(
    store: Store, look: Callable[[Store, str], object]
) -> None:
    refs = _Interrupted(store.path, ending)
    store.refs.create(ACTIVE + A1, ONE)
    found = look(store._replace(refs=refs), A1)
    assert found in (A1, Head(ThreadId(A1), OTHER, archived=True))


def test_a_thread_that_ends_while_a_beginning_is_looked_for_is_found_once(store: Store) -> None:
    refs = _Interrupted(store.path, ending)
    store.refs.create(ACTIVE + A1, ONE)
    interrupted = store._replace(refs=refs)
    assert resolve_thread(interrupted, "01J") == A1


def test_whatever_its_archive_ref_holds_a_thread_that_has_one_is_not_active(store: Store) -> None:
    with_threads(store, A1, A2)
    ref = Path(store.path, ARCHIVE, A1)
    ref.parent.mkdir()
    ref.write_text("no object id\n")
    assert list_threads(store, archived=False) == [A2]
    assert list_threads(store, archived=True) == [A1]


def test_store_knows_which_transitions_it_made_itself(
    store: Store, clock: Callable[[], int]
) -> None:
    own = store.own_transitions
    story = Story(store, clock)
    assert own.take() == [story.head.commit]
    story.write_step("writer", "not taken")
    assert own.take() == []
    steps = [story.step().commit, story.end().commit]
    assert own.take() == steps
    assert own.take() == []


def test_a_thread_behind_a_broken_line_is_not_said_to_be_missing(store: Store) -> None:
    rows = [f"{ONE} refs/threads/01J0000000000000000000000{n}\n" for n in range(1, 9)]
    rows[4] = "garbage\n"
    Path(store.path, "packed-refs").write_text(
        "# pack-refs with: peeled fully-peeled sorted \n" + "".join(rows)
    )
    with pytest.raises(BadPackedRefs, match="garbage"):
        get_head(store, ThreadId("01J00000000000000000000005"))
