import os
from pathlib import Path

import pytest
from commands.forging import forge, says
from commands.sharing import Site, Sites, another, failure_of, refs_of
from commands.world import DEMO, World
from refusing import is_refused, refuses

from uwf_git.cli.remote import fetch_document, fetch_text
from uwf_git.commands.workflow.history import remove_workflow, rollback_workflow
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
    failure = failure_of(fetched, "threads-busy")
    assert failure.exit_status == 4
    assert thread in failure.message
    assert site.find(f"threads/{thread}") == before
    assert site.find(f"threads/{new}") is not None
    assert [each.event for each in site.fetch().reconciled] == ["moved"]


@pytest.mark.parametrize("ours", ["1", "13", "3"])
def test_a_workflow_that_was_put_at_both_is_that_of_the_remote(sites: Sites, ours: str) -> None:
    site, other, _thread = sites
    for each, versions in ((site, ours), (other, "123")):
        for version in versions:
            each.world.put(DEMO.replace("Writes.", f"Writes {version}."))
    other.push()
    assert site.find("workflows/demo") != other.find("workflows/demo")
    assert site.fetch().failure() is None
    assert site.find("workflows/demo") == other.find("workflows/demo")
    assert site.push().failure() is None


@pytest.mark.parametrize("theirs", ["2", "21"])
def test_diverged_workflows_are_both_kept(sites: Sites, theirs: str) -> None:
    site, other, _thread = sites
    for each, versions in ((site, "12"), (other, theirs)):
        for version in versions:
            each.world.put(DEMO.replace("Writes.", f"Writes {version}."))
    other.push()
    failure = failure_of(site.fetch(), "diverged")
    assert "workflow demo" in failure.message
    assert "git update-ref refs/workflows/demo" in (failure.hint or "")
    assert site.find("workflows/demo") != other.find("workflows/demo")
    assert site.find("uwf/remotes/origin/workflows/demo") == other.find("workflows/demo")


@pytest.mark.parametrize("ours", ["remove", "put rollback put"])
def test_what_was_done_with_a_workflow_here_is_not_undone(sites: Sites, ours: str) -> None:
    for each, verbs in zip(sites[:2], (ours, f"{ours} rollback"), strict=True):
        world = each.world
        for verb in verbs.split():
            if verb == "put":
                world.put(DEMO.replace("Writes.", "Writes well."))
            elif verb == "remove":
                remove_workflow(world.store, world.caller, "demo", reason="It leaks.")
            else:
                rollback_workflow(world.store, world.caller, "demo")
    site, other, _thread = sites
    other.push()
    before = site.find("workflows/demo")

    assert is_refused(site.fetch().failure(), "diverged")
    assert site.find("workflows/demo") == before


def test_names_that_differ_in_case_are_no_damage(sites: Sites) -> None:
    site, other, _thread = sites
    for each, name in ((site, "twin"), (other, "Twin")):
        each.world.put(DEMO.replace("name: demo", f"name: {name}"))
    other.push()
    remove_workflow(site.world.store, site.world.caller, "twin")

    fetched = site.fetch()
    failure = failure_of(fetched, "diverged")
    assert failure.exit_status == 4
    told = "it differs from twin, which is here, in case only"
    assert failure.message == f"workflow Twin has diverged: {told}"
    assert f"diverged  refs/workflows/Twin: {told}\n" in fetch_text(fetch_document(fetched))
    assert "`git push origin :refs/workflows/twin`" in str(failure.hint)
    assert "`git update-ref -d refs/workflows/twin`" in str(failure.hint)
    assert site.find("workflows/Twin") is None
    twin = site.find("workflows/twin")
    assert twin is not None
    site.world.store.refs.delete("refs/workflows/twin", seen=twin)
    assert site.fetch().failure() is None
    assert site.find("workflows/Twin") == other.find("workflows/Twin")


def test_what_is_wrong_is_neither_tracked_nor_taken_over(sites: Sites, hub: Path) -> None:
    site, other, thread = sites
    tip = other.find(f"threads/{thread}")
    (hub / "refs" / "threads" / WRONG).write_text(f"{tip}\n")
    good = other.world.start()
    other.push()
    failure = failure_of(site.fetch(), "refs-refused", StoreDamaged)
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

    failure = failure_of(site.fetch(), "refs-refused", StoreDamaged)
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
    failure = failure_of(site.fetch(), "refs-refused", StoreDamaged)
    assert f"delete that file, refs/threads/{thread} in the store" in (failure.hint or "")
    file.unlink()
    assert site.fetch().failure() is None
    assert site.find(f"threads/{thread}") == other.find(f"threads/{thread}")
