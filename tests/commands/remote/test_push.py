import re
from pathlib import Path

import pytest
from commands.sharing import Shared, Sites, failure_of, refs_of
from commands.world import Git, World
from refusing import is_refused, refuses
from store.small_packs import lose

from uwf_git.errors import StoreDamaged
from uwf_git.store.refs import BadRef


def test_what_git_pushed_is_noticed(sites: Sites, hub: Path) -> None:
    site, other, thread = sites
    site.step(thread)
    site.push()
    # This store has not seen that push, and has nothing new for the hub.
    pushed = other.push()
    assert [each.ref for each in pushed.standing("behind")] == [f"refs/threads/{thread}"]
    assert pushed.failure() is None
    other.step(thread, ok=True)
    pushed = other.push()
    assert [each.ref for each in pushed.standing("fetch-first")] == [f"refs/threads/{thread}"]
    assert is_refused(pushed.failure(), "fetch-first")


def test_a_diverged_push_names_the_command_that_helps(sites: Sites) -> None:
    site, other, thread = sites
    other.step(thread)
    other.push()
    site.step(thread, ok=True)
    site.fetch()
    failure = failure_of(site.push(), "push-diverged")
    here, there = site.find(f"threads/{thread}"), other.find(f"threads/{thread}")
    assert f"here at {here}, at origin at {there}" in failure.message
    assert "`uwf fetch origin`" in (failure.hint or "")


def test_a_thread_that_is_not_whole_stays_and_the_others_go(
    shared: Shared, world: World, hub: Path
) -> None:
    site, thread = shared
    tip = site.world.snapshot(thread)
    good = site.world.start()
    blob = tip.get_entry("now.json").decode()
    lose(site.world.store, blob)
    failure = failure_of(site.push(), "push-damaged", StoreDamaged)
    assert failure.exit_status == 5
    assert blob in failure.message
    assert f"uwf verify refs/threads/{thread}" in (failure.hint or "")
    assert set(refs_of(hub)) == {f"threads/{good}", "workflows/demo"}


def test_a_commit_made_by_hand_is_not_pushed_and_fetch_leads_back(
    sites: Sites, hub: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, _other, thread = sites
    ref, tip = f"refs/threads/{thread}", site.find(f"threads/{thread}")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "1800000000 +0000")
    hand = git("commit-tree", "-p", tip, "-m", "a note", f"{tip}^{{tree}}", cwd=site.path).strip()
    git("update-ref", ref, hand, cwd=site.path)
    assert is_refused(site.push().failure(), "push-damaged")
    assert refs_of(hub)[f"threads/{thread}"] == tip
    failure = failure_of(site.fetch(), "refs-refused")
    assert f"here, the message of commit {hand} has no trailers" in failure.message
    names, takes_back = re.findall("`git ([^`]*)`", failure.hint or "")[1:]
    assert ref in git(*names.split(), cwd=site.path)
    git(*takes_back.replace("REF", ref).split(), cwd=site.path)
    assert site.fetch().failure() is None
    assert site.push().failure() is None
    assert refs_of(hub)[f"threads/{thread}"] == tip


def test_a_remote_has_to_be_known(shared: Shared) -> None:
    with refuses("no-such-remote"):
        shared[0].push(remote="elsewhere")


def test_the_loser_of_a_race_for_an_archive_has_to_fetch(shared: Shared, hub: Path) -> None:
    site, thread = shared
    site.push()
    site.end(thread)
    # Another process archives it after the refs were listed.
    faster = f"git update-ref refs/archive/{thread} refs/threads/{thread}"
    hook = hub / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nunset GIT_QUARANTINE_PATH\n{faster}\n")
    hook.chmod(0o755)
    pushed = site.push()
    assert pushed.pushed == []
    assert is_refused(pushed.failure(), "fetch-first")


def test_a_lock_that_is_left_at_the_remote_is_named(shared: Shared, hub: Path) -> None:
    site, thread = shared
    site.push()
    site.step(thread, ok=True)
    lock = hub / "refs/threads" / f"{thread}.lock"
    lock.touch()
    failure = failure_of(site.push(), "ref-locked")
    assert failure.message.endswith(f"{thread}.lock is held by another git process at origin")
    lock.unlink()
    assert site.push().failure() is None


def test_a_ref_that_cannot_be_read_is_reported_and_the_others_go(shared: Shared, hub: Path) -> None:
    site, thread = shared
    other = site.world.start()
    site.push()
    (site.path / "refs" / "threads" / thread).write_text("")
    failure = failure_of(site.push(), "push-damaged", StoreDamaged)
    assert failure.facts["refs"] == [f"refs/threads/{thread}"]
    assert site.push(other).failure() is None
    with pytest.raises(BadRef):
        site.push(thread)


def test_a_ref_to_a_commit_that_is_lost_is_damage_and_not_another_way(
    shared: Shared, hub: Path
) -> None:
    site, thread = shared
    site.push()
    (site.path / "refs" / "threads" / thread).write_text("1" * 40 + "\n")
    assert "1" * 40 in failure_of(site.push(), "push-damaged", StoreDamaged).message
