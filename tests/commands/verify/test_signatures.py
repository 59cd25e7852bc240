"""Every commit of a command is signed if git's settings say so, and listed as signed."""

import os
import shutil
from pathlib import Path

import pytest
from commands.flows import Split, copy_commit, move, put
from commands.forging import says
from commands.world import World
from refusing import refuses
from store.signing_keys import (
    Git,
    make_ssh_key,
    needs_ssh,
    signed_and_trusted,
    signed_by,
    with_settings,
)
from store.small_packs import lose
from store.story import put_raw

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.cas import bootstrap_store, put_payload
from uwf_git.commands.inspect.graph import view_report
from uwf_git.commands.verify.history import SignedCommit, note_own_judges, verify_signatures
from uwf_git.commands.verify.verify import verify
from uwf_git.model.names import Oid
from uwf_git.store.git.config import set_config
from uwf_git.store.objects.commit import read_raw_commit

PREFIXES = ("refs/threads/", "refs/archive/", "refs/workflows/", "refs/cas/")


@pytest.fixture
def signing(world: World, key: Path, tmp_path: Path) -> World:
    """Return a world whose commits are signed by a key that it trusts."""
    world.store = signed_and_trusted(world.store, key, tmp_path)
    return world


def told(world: World) -> list[SignedCommit]:
    """Verify everything there is."""
    refs = world.store.refs
    tips = [
        (prefix + name, oid)
        for prefix in PREFIXES
        for name in refs.names(prefix)
        if (oid := refs.find(prefix + name)) is not None
    ]
    wrong = {each.commit for each in verify(world.store, []).troubles}
    return list(verify_signatures(world.store, os.environ, tips, wrong))


def live(world: World) -> None:
    """Let every command that writes a commit write one."""
    bootstrap_store(world.store, world.caller)
    put_payload(world.store, world.caller, "Text", "by hand")
    thread = world.begun()
    world.fail(thread)
    world.retry(thread)
    world.step(thread)
    world.fork(thread)
    world.step(thread)
    world.step(thread)
    world.kill(world.start())


@needs_ssh
def test_every_commit_of_every_command_is_signed_and_git_agrees(signing: World, git: Git) -> None:
    live(signing)
    found = told(signing)
    events = {each.event for each in found}
    assert events == {"put", "start", "step", "attempt", "retry", "end", "kill", "fork"}
    assert {(each.verdict.status, each.verdict.signer) for each in found} == {
        ("good", "ada@example.com")
    }
    assert [each.finding for each in found] == [None] * len(found)
    repository = Path(signing.store.path)
    git("verify-commit", *[each.commit for each in found], cwd=repository)
    assert {each.commit for each in found} == set(git("rev-list", "--all", cwd=repository).split())


@needs_ssh
def test_each_step_is_listed_with_its_signer_newest_first(
    signing: World, key: Path, tmp_path: Path
) -> None:
    thread = signing.begun()
    signing.step(thread)
    signing.store = signed_by(signing.store, make_ssh_key(tmp_path / "other"))
    signing.step(thread)
    signing.store = with_settings(signing.store, commit__gpgsign="false")
    signing.step(thread)
    ref = f"refs/archive/{thread}"
    tip = signing.store.refs.find(ref)
    assert tip is not None
    found = list(verify_signatures(signing.store, os.environ, [(ref, tip)], ()))
    assert [(each.event, each.depth, each.role, each.verdict.status) for each in found] == [
        ("end", 2, None, "unsigned"),
        ("step", 2, "checker", "untrusted"),
        ("step", 1, "writer", "good"),
        ("start", 0, None, "good"),
    ]
    assert {(each.ref, each.thread) for each in found} == {(ref, thread)}
    assert found[2].said.startswith("writer: ")
    # Nobody forged anything.
    assert [each.finding for each in found] == [None] * 4


@needs_ssh
def test_forged_step_is_trouble(signing: World) -> None:
    thread = signing.begun()
    signing.step(thread)
    tip = signing.snapshot(thread).commit.oid
    raw = read_raw_commit(signing.store.objects, tip)
    forged = Oid(put_raw(signing.store, "commit", raw.replace(b"writer: ", b"boss: ")).decode())
    signing.store.refs.advance(f"refs/threads/{thread}", seen=tip, to=forged)
    worst, *rest = [each for each in told(signing) if each.thread]
    assert [each.verdict.status for each in (worst, *rest)] == ["bad", "good"]
    trouble = worst.finding
    assert trouble is not None
    assert trouble.message.startswith(f"commit {forged} has a signature that is bad: ")
    assert (trouble.ref, trouble.commit) == (f"refs/threads/{thread}", forged)
    assert f"git verify-commit -v {forged}" in trouble.hint


@needs_ssh
def test_revoked_signer_is_trouble(signing: World, key: Path, tmp_path: Path) -> None:
    signing.put()
    revoked = tmp_path / "revoked"
    shutil.copy(f"{key}.pub", revoked)
    signing.store = with_settings(signing.store, gpg__ssh__revocationFile=str(revoked))
    (found,) = told(signing)
    assert found.finding is not None
    assert "has a signature that is revoked: its key was revoked" in found.finding.message


@needs_ssh
def test_damaged_history_is_listed_as_far_as_it_can_be_read(signing: World) -> None:
    thread = signing.begun()
    start = signing.snapshot(thread).commit.oid
    signing.step(thread)
    lose(signing.store, start)
    signing.reopen()
    assert [each.event for each in told(signing)] == ["step", "put"]


def counted(world: World, tmp_path: Path, answer: str = """{"meta": {"text": "x"}}""") -> str:
    """Return an agent that notes down that it ran."""
    return world.program(f"echo ran >> {tmp_path}/runs; echo '{answer}'")


@needs_ssh
@pytest.mark.parametrize("answer", ['{"meta": {"text": "x"}}', "no answer"])
def test_work_is_kept_when_its_commit_cannot_be_signed(
    world: World, tmp_path: Path, answer: str
) -> None:
    thread = world.start(counted(world, tmp_path, answer), workflow=world.put().workflow)
    world.store = signed_by(world.store, make_ssh_key(tmp_path / "locked", passphrase="secret"))
    play = agent_player(lambda _said: None)
    for _again in range(2):
        with refuses("cannot-sign") as caught:
            world.step(thread, play)
        assert "nothing was lost" in str(caught.value.hint)
        assert world.snapshot(thread).record.event == "start"
    world.store = with_settings(world.store, commit__gpgsign="false")
    if answer == "no answer":
        world.fail(thread, play)
    else:
        assert world.step(thread, play).depth == 1
    assert (tmp_path / "runs").read_text() == "ran\n"
    assert not Path(world.store.local_path("run", thread)).exists()


def test_agent_does_not_start_when_its_work_could_not_be_signed(
    world: World, tmp_path: Path
) -> None:
    thread = world.start(counted(world, tmp_path), workflow=world.put().workflow)
    play = agent_player(lambda _said: None)
    for settings in ({"user__signingkey": "/none"}, {"gpg__ssh__program": "/none"}):
        world.store = with_settings(
            world.store, **{"commit__gpgsign": "true", "gpg__format": "ssh", **settings}
        )
        with refuses("cannot-sign", "unfit-setting"):
            world.step(thread, play)
    assert not (tmp_path / "runs").exists()


def test_commits_that_follow_from_others_are_derived(world: World, split: Split) -> None:
    split.finish_branches()
    split.step()

    found = [each for each in told(world) if each.thread]

    assert {(each.event, each.verdict.status) for each in found} == {
        ("start", "unsigned"),
        ("step", "unsigned"),
        ("end", "unsigned"),
        *((event, "derived") for event in ("split", "start", "join")),
    }
    assert all(each.finding is None for each in found)
    # Those of the branches are behind the thread.
    ref = f"refs/threads/{split.thread}"
    verified = verify(world.store, [ref])
    tips = [(ref, world.tip(split.thread))]
    alone = list(verify_signatures(world.store, os.environ, tips, ()))
    rows = [(each.commit, each.thread, each.verdict) for each in found]
    assert sorted(rows) == sorted((each.commit, each.thread, each.verdict) for each in alone)
    assert verified.unsigned == [each.verdict.status for each in alone].count("unsigned")


def test_a_forged_commit_is_not_derived_because_it_says_so(world: World, split: Split) -> None:
    commit = copy_commit(world.store, world.tip(split.thread))
    says("checks into 2", "checks into 3")(commit)
    forged = move(world, split.thread, put(world.store, commit)).commit.oid

    (row,) = [each for each in told(world) if each.commit == forged]

    assert (row.event, row.verdict.status) == ("split", "unsigned")
    (*_, entry) = view_report(world.store, split.thread, os.environ).document["entries"]
    assert (entry["commit"], entry["signature"]) == (forged, {"status": "unsigned"})


@needs_ssh
def test_the_store_s_own_list_of_keys_is_noted_unless_it_is_trusted(
    signing: World, tmp_path: Path
) -> None:
    assert list(note_own_judges(signing.store)) == []
    name, other = "gpg.ssh.allowedSignersFile", f"{tmp_path}/other"
    set_config(f"{signing.store.path}/config", name, other)
    signing.reopen()

    (note,) = note_own_judges(signing.store)

    assert note.message.endswith(f"config sets {name} to a value that is not trusted here: {other}")
    assert f"uwf agent trust --setting {name}" in note.hint
