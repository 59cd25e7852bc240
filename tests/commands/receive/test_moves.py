"""Every way in which a push may change the refs of one thread, and what comes of it."""

import functools
from dataclasses import dataclass

import pytest
from fresh_store import fresh_store
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from store.story import THREAD, Story

from uwf_git.commands.receive.receive import Push, find_bad_move
from uwf_git.commands.receive.ref_update import RefUpdate
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store

ACTIVE, ARCHIVE = f"refs/threads/{THREAD}", f"refs/archive/{THREAD}"
WORKFLOW = "refs/workflows/demo"


@dataclass
class Told:
    """A thread's commits, and stores that have it at one of them."""

    store: Store
    commits: dict[str, Oid]

    def push(self, stored: dict[str, str], *asked: tuple[str, str | None]) -> list[str | None]:
        """Return the refusals of the changes *asked*, in a store with the refs *stored*."""
        store = self.store._replace(refs=fresh_store().refs)
        for name, at in stored.items():
            store.refs.create(name, self.commits[at])
        updates = {
            # The old value that the pusher sends is ignored.
            name: RefUpdate(name, Oid("b" * 40), None if at is None else self.commits[at])
            for name, at in asked
        }
        found = [find_bad_move(Push(store, updates), update) for update in updates.values()]
        return [refusal and refusal.message for refusal in found]


@functools.cache
def make_told() -> Told:
    """Make a thread: start, one, two, then three or end; and `other`, which diverges after one."""
    numbers = iter(range(10**12, 10**13, 1000))
    story = Story(fresh_store(), lambda: next(numbers))
    commits = {"start": story.head.commit, "one": story.step().commit}
    commits["other"] = story.write_step("writer", "another way")
    commits["two"] = story.step().commit
    commits["end"] = story.write_end()
    commits["three"] = story.step().commit
    return Told(story.store, commits)


WAYS = [("start", "one", "two", "three"), ("start", "one", "two", "end"), ("start", "one", "other")]


def goes_on(new: str, old: str) -> bool:
    return any(old in way and new in way and way.index(old) <= way.index(new) for way in WAYS)


ALL = ["end", "one", "other", "start", "three", "two"]


@given(stored=st.sampled_from(ALL), new=st.sampled_from(ALL))
def test_any_ref_of_ours_moves_forward_only(stored: str, new: str) -> None:
    for name in (ACTIVE, WORKFLOW, "refs/cas/nodes"):
        (told,) = make_told().push({name: stored}, (name, new))
        assert (told is None) is goes_on(new, stored)
        assert make_told().push({}, (name, new)) == [None]


@given(active=st.sampled_from(ALL), new=st.sampled_from(ALL), delete=st.booleans())
def test_archive_comes_where_the_thread_leads(active: str, new: str, *, delete: bool) -> None:
    asked: list[tuple[str, str | None]] = [(ARCHIVE, new)]
    if delete:
        asked.append((ACTIVE, None))

    told = make_told().push({ACTIVE: active}, *asked)

    assert [each is None for each in told] == [goes_on(new, active)] * len(asked)


@given(active=st.sampled_from(ALL), moved=st.sampled_from(ALL), ended=st.sampled_from(ALL))
def test_thread_may_go_on_and_end_in_one_push(active: str, moved: str, ended: str) -> None:
    told = make_told().push({ACTIVE: active}, (ACTIVE, moved), (ARCHIVE, ended))

    fits = goes_on(moved, active) and goes_on(ended, moved)
    assert (told == [None, None]) is fits


@given(ended=st.sampled_from(ALL), new=st.sampled_from(ALL))
def test_archived_thread_is_never_touched_again(ended: str, new: str) -> None:
    (moved,) = make_told().push({ARCHIVE: ended}, (ARCHIVE, new))
    assert (moved is None) is (ended == new)
    assert moved is None or "never moved" in moved
    (deleted,) = make_told().push({ARCHIVE: ended}, (ARCHIVE, None))
    assert deleted is not None
    assert "never deleted" in deleted
    (begun,) = make_told().push({ARCHIVE: ended}, (ACTIVE, new))
    assert begun is not None
    assert "has ended, and is archived" in begun


@given(active=st.sampled_from(ALL), ended=st.sampled_from(ALL))
def test_litter_beside_an_archive_may_be_deleted(active: str, ended: str) -> None:
    (told,) = make_told().push({ACTIVE: active, ARCHIVE: ended}, (ACTIVE, None))

    assert (told is None) is goes_on(ended, active)


@pytest.mark.parametrize("name", [ACTIVE, WORKFLOW, "refs/cas/nodes"])
def test_what_would_be_lost_is_not_deleted(name: str) -> None:
    (told,) = make_told().push({name: "one"}, (name, None))

    assert told is not None
    assert told.startswith("it would be lost")


def test_deleting_the_archive_with_the_thread_is_no_move() -> None:
    told = make_told().push({ACTIVE: "one"}, (ACTIVE, None), (ARCHIVE, None))

    assert told[0] is not None
    assert "would be lost" in told[0]


def test_missing_commit_is_reported() -> None:
    broken = Told(make_told().store, {**make_told().commits, "nowhere": Oid("1" * 40)})

    with refuses("damaged-commit", match="is missing"):
        broken.push({ACTIVE: "one"}, (ACTIVE, "nowhere"))
