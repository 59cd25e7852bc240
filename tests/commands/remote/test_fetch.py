import os
from pathlib import Path

from commands.forging import forge, says
from commands.sharing import Site, Sites, another, refs_of
from commands.world import DEMO, World
from refusing import is_refused, refuses

from uwf_git.errors import StoreDamaged
from uwf_git.store.store import open_store
from uwf_git.store.threads.local_files import lock_thread

WRONG = "01J7K9M2XNPQR5VWBCDF8G3H4T"


def test_what_is_ahead_there_is_taken_over(sites: Sites) -> None:
    site, other, thread = sites
    other.step(thread)
    new = other.world.start()
    other.world.put(DEMO.replace("Writes.", "Writes well."))
    other.push()
    fetched = site.fetch()
    assert {(each.event, each.ref) for each in fetched.reconciled} == {
        ("moved", f"refs/threads/{thread}"),
        ("created", f"refs/threads/{new}"),
        ("moved", "refs/workflows/demo"),
    }
    assert fetched.failure() is None
    assert fetched.unchanged == 0
    assert site.refs() == other.refs()
    assert site.fetch().unchanged == 3


def test_a_busy_thread_is_named_and_taken_over_later(sites: Sites) -> None:
    site, other, thread = sites
    other.step(thread)
    new = other.world.start()
    other.push()
    before = site.find(f"threads/{thread}")
    with lock_thread(site.world.store, thread, since_ms=1):
        fetched = site.fetch()
    failure = fetched.failure()
    assert is_refused(failure, "threads-busy")
    assert failure.exit_status == 4
    assert thread in failure.message
    assert site.find(f"threads/{thread}") == before
    assert site.find(f"threads/{new}") is not None
    assert [each.event for each in site.fetch().reconciled] == ["moved"]


def test_a_workflow_that_was_put_at_both_is_that_of_the_remote(sites: Sites) -> None:
    site, other, _thread = sites
    for words, each in (("well", site), ("well", other), ("best", other)):
        each.world.put(DEMO.replace("Writes.", f"Writes {words}."))
    other.push()
    assert site.find("workflows/demo") != other.find("workflows/demo")
    assert site.fetch().failure() is None
    assert site.find("workflows/demo") == other.find("workflows/demo")
    assert site.push().failure() is None


def test_diverged_workflows_are_both_kept(sites: Sites) -> None:
    site, other, _thread = sites
    for each, words in ((site, "Writes well."), (other, "Writes badly.")):
        each.world.put(DEMO.replace("Writes.", words))
    other.push()
    failure = site.fetch().failure()
    assert is_refused(failure, "diverged")
    assert "workflow demo" in failure.message
    assert "git update-ref refs/workflows/demo" in (failure.hint or "")
    assert site.find("workflows/demo") != other.find("workflows/demo")
    assert site.find("uwf/remotes/origin/workflows/demo") == other.find("workflows/demo")


def test_what_is_wrong_is_neither_tracked_nor_taken_over(sites: Sites, hub: Path) -> None:
    site, other, thread = sites
    tip = other.find(f"threads/{thread}")
    (hub / "refs" / "threads" / WRONG).write_text(f"{tip}\n")
    good = other.world.start()
    other.push()
    failure = site.fetch().failure()
    assert isinstance(failure, StoreDamaged)
    assert is_refused(failure, "refs-refused")
    assert failure.exit_status == 5
    assert WRONG in failure.message
    assert site.find(f"threads/{WRONG}") is None
    assert site.find(f"uwf/remotes/origin/threads/{WRONG}") is None
    assert site.find(f"threads/{good}") is not None
    # It stays wrong, and is reported every time.
    assert is_refused(site.fetch().failure(), "refs-refused")


def test_a_split_out_of_nothing_is_not_taken_over(sites: Sites, hub: Path) -> None:
    site, other, thread = sites
    other.step(thread)
    other.push()
    before = site.find(f"threads/{thread}")
    there = open_store(str(hub), environ=os.environ)
    forge(there, f"refs/threads/{thread}", {-1: says("Uwf-Event: step", "Uwf-Event: split")})

    failure = site.fetch().failure()

    assert isinstance(failure, StoreDamaged)
    assert is_refused(failure, "refs-refused")
    assert "there can be no such split" in failure.message
    assert site.find(f"threads/{thread}") == before


def test_a_thread_that_was_never_seen_before_comes_from_a_known_one(
    sites: Sites, hub: Path
) -> None:
    site, other, thread = sites
    other.end(thread)
    other.push()
    assert [each.event for each in site.fetch().reconciled] == ["archived"]
    assert set(site.refs("threads", "archive")) == {f"archive/{thread}"}
    assert refs_of(hub, "threads", "archive") == site.refs("threads", "archive")
    assert another(site.world, str(hub), name="late").refs() == site.refs()


def test_without_a_remote_there_is_nothing_to_fetch_from(world: World) -> None:
    with refuses("which-remote"):
        Site(world).fetch()


def test_damage_that_is_here_is_not_blamed_on_the_remote_and_its_hint_helps(sites: Sites) -> None:
    site, other, thread = sites
    file = site.path / "refs" / "threads" / thread
    file.write_text("")
    failure = site.fetch().failure()
    assert isinstance(failure, StoreDamaged)
    assert is_refused(failure, "refs-refused")
    assert f"delete that file, refs/threads/{thread} in the store" in (failure.hint or "")
    file.unlink()
    assert site.fetch().failure() is None
    assert site.find(f"threads/{thread}") == other.find(f"threads/{thread}")
