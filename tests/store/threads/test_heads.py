"""Heads; what must hold on every kind of store is in test_contract.py."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands.flows import split_checks
from commands.world import make_world
from hypothesis import given
from hypothesis import strategies as st
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
)
from uwf_git.store.threads.naming import ShortIds, describe_threads, resolve_thread

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
    assert look(store._replace(refs=refs), A1) in (A1, Head(ThreadId(A1), OTHER, archived=True))


def test_a_thread_that_ends_while_a_beginning_is_looked_for_is_found_once(store: Store) -> None:
    refs = _Interrupted(store.path, ending)
    store.refs.create(ACTIVE + A1, ONE)
    assert resolve_thread(store._replace(refs=refs), "01J") == A1


def test_whatever_its_archive_ref_holds_a_thread_that_has_one_is_not_active(store: Store) -> None:
    with_threads(store, A1, A2)
    ref = Path(store.path, ARCHIVE, A1)
    ref.parent.mkdir()
    ref.write_text("no object id\n")
    assert list_threads(store, archived=False) == [A2]
    assert list_threads(store, archived=True) == [A1]


def test_store_knows_which_transitions_it_made_itself(store: Store, story: Story) -> None:
    own = store.own_transitions
    assert own.take() == [story.head.commit]
    story.write_step("writer", "not taken")
    assert own.take() == []
    assert [story.step().commit, story.end().commit] == own.take()
    assert own.take() == []


def test_a_thread_behind_a_broken_line_is_not_said_to_be_missing(store: Store) -> None:
    rows = [f"{ONE} refs/threads/01J0000000000000000000000{n}\n" for n in range(1, 9)]
    rows[4] = "garbage\n"
    Path(store.path, "packed-refs").write_text(
        "# pack-refs with: peeled fully-peeled sorted \n" + "".join(rows)
    )
    with pytest.raises(BadPackedRefs, match="garbage"):
        get_head(store, ThreadId("01J00000000000000000000005"))


# Short ids, and `@`.

SYMBOLS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ENDS = st.text(SYMBOLS[:3], min_size=16, max_size=16)


@given(
    ids=st.sets(
        st.tuples(st.sampled_from(["01J7K9M2XN", "01J7K9M2XP", "7ZZZZZZZZZ"]), ENDS).map("".join),
        min_size=1,
    )
)
def test_short_id_is_the_shortest_that_names_one_thread(ids: set[str]) -> None:
    short = ShortIds(ids)

    for each in ids:
        found = short.shorten(each)
        assert [other for other in ids if other.startswith(found)] == [each]
        assert len(found) >= 10
        assert len(found) == 10 or any(
            other.startswith(found[:-1]) for other in ids if other != each
        )


A, B, C = (ThreadId(f"01J7K9M2X{end}PQR5VWBCDF8G3H4T") for end in "ABC")


@pytest.fixture
def three(store: Store, clock: Callable[[], int]) -> Store:
    """Return a store with two active threads, and one that has ended between them."""
    Story(store, clock, A)
    Story(store, clock, B).end()
    Story(store, clock, C)
    return store


def test_at_is_the_newest_be_it_active_or_not(three: Store) -> None:
    assert [resolve_thread(three, name) for name in ("@", "@1", "@2", "@3")] == [C, C, B, A]


def test_at_is_no_branch_where_its_thread_is(
    tmp_path: Path, clock: Callable[[], int], thread_ids: Callable[[], ThreadId]
) -> None:
    split = split_checks(make_world(tmp_path, clock, thread_ids))
    assert max([split.thread, *split.children]) != split.thread

    assert resolve_thread(split.world.store, "@") == split.thread


@pytest.mark.parametrize("text", ["@4", "@0", "@x", "@ 1", "@-1"])
def test_at_that_names_nothing_is_refused(text: str, three: Store) -> None:
    with pytest.raises(NoSuchThread, match=f"there is no thread {text}"):
        resolve_thread(three, text)


def test_one_that_cannot_be_read_has_its_id(three: Store) -> None:
    three.refs.create(ACTIVE + "01J7K9M2XDPQR5VWBCDF8G3H4T", Oid("1" * 40))

    assert "01J7K9M2XD" in describe_threads(three, [ThreadId("01J7K9M2XDPQR5VWBCDF8G3H4T")])
    assert resolve_thread(three, "@2") == C


def test_one_that_is_gone_has_its_id(three: Store) -> None:
    assert describe_threads(three, [ThreadId("01J7K9M2XDPQR5VWBCDF8G3H4T")]) == ["01J7K9M2XD"]
