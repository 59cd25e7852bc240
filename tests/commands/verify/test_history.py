import pytest
from commands.forging import forge, says
from dulwich.objects import Commit, ObjectID
from store.story import THREAD, Story

from uwf_git.commands.verify.history import thread_of, walk_back
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE

REF = ACTIVE + THREAD
OTHER = "01J7K9M2XNPQR5VWBCDF8G3H4V"


@pytest.fixture
def oids(store: Store) -> list[Oid]:
    """Return the commits of a thread of four steps, the oldest first."""
    story = Story(store, iter(range(10**12, 10**13, 1000)).__next__)
    for text in "abcd":
        story.step(text=text)
    return forge(store, REF, {})


def test_walk_goes_back_to_the_beginning(store: Store, oids: list[Oid]) -> None:
    history = walk_back(store.objects, oids[-1], set())

    assert history.commits == oids[::-1]
    assert (history.behind, history.damage, history.forks) == (None, None, {})
    assert (history.tip, history.beginnings) == (THREAD, [THREAD])


def test_walk_stops_at_what_is_believed(store: Store, oids: list[Oid]) -> None:
    history = walk_back(store.objects, oids[-1], {oids[2], oids[0]})

    assert (history.commits, history.behind) == ([oids[4], oids[3]], oids[2])
    assert walk_back(store.objects, oids[-1], {oids[-1]}).commits == []


def test_walk_stops_at_what_cannot_be_read(store: Store, oids: list[Oid]) -> None:
    def cut(commit: Commit) -> None:
        commit.parents = [ObjectID(b"1" * 40)]

    forged = forge(store, REF, {2: cut})

    history = walk_back(store.objects, forged[-1], set())
    assert history.commits == forged[:1:-1]
    assert history.damage is not None
    assert history.damage.facts["commit"] == "1" * 40


def test_walk_goes_through_forks_and_tells_whose_commits_they_are(
    store: Store, oids: list[Oid]
) -> None:
    changes = {
        number: says(f"Uwf-Thread: {THREAD}", f"Uwf-Thread: {OTHER}") for number in (2, 3, 4)
    }
    forge(store, REF, changes)
    fork = says("Uwf-Event: step", "Uwf-Event: fork")
    forged = forge(store, REF, {2: fork})

    history = walk_back(store.objects, forged[-1], set())

    assert history.forks == {forged[2]: OTHER}
    assert (history.tip, history.beginnings) == (OTHER, [OTHER, THREAD])
    assert walk_back(store.objects, forged[-1], {forged[1]}).beginnings == [OTHER]


def test_commit_without_a_thread_trailer_belongs_to_no_thread(
    store: Store, oids: list[Oid]
) -> None:
    forged = forge(store, REF, {0: says("Uwf-Thread: ", "Uwf-Fred: ")})

    assert thread_of(read_commit(store.objects, forged[0])) is None
    assert thread_of(read_commit(store.objects, forged[1])) == THREAD
