"""Pushes that a shared store accepts or refuses, by the real git."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from commands.flows import copy_commit, plays, put, split_files
from commands.forging import says as says_words
from commands.world import DEMO, Git, World, says
from interop.hub import Hub, hub, push, refused, world
from programs import write_program

from uwf_git.commands.remote.push import push_remote
from uwf_git.commands.verify.verify import verify
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import set_config
from uwf_git.store.store import open_store

__all__ = ["hub", "world"]

PLAIN = ("refs/threads/*:refs/threads/*", "refs/archive/*:refs/archive/*")


@pytest.fixture
def thread(world: World) -> ThreadId:
    """Return a thread of one step that the hub has."""
    thread = world.stepped()
    first = push(world, active(thread))
    assert first.accepted, first.told
    return thread


def active(thread: str) -> str:
    return f"refs/threads/{thread}"


def archive(thread: str) -> str:
    return f"refs/archive/{thread}"


@pytest.mark.parametrize("words", [(), ("--atomic",)])
def test_thread_comes_and_goes_on(hub: Hub, words: tuple[str, ...]) -> None:
    world = hub.clone()
    thread = world.begun()

    for _step in range(2):
        assert push(world, *words, "refs/*:refs/*").accepted
        assert hub.refs()[active(thread)] == world.tip(thread)
        world.step(thread)
    assert "refs/workflows/demo" in hub.refs()


def test_rewritten_thread_is_refused(hub: Hub, world: World, thread: ThreadId, git: Git) -> None:
    before = hub.refs()
    git("update-ref", active(thread), f"{world.tip(thread)}~", cwd=Path(world.store.path))
    world.step(thread)
    mine = world.tip(thread)

    pushed = refused(world, f"+{mine}:{active(thread)}")

    (error,) = pushed.errors
    assert error.startswith(f"{active(thread)}: {mine} does not descend from ")
    assert "hint: `uwf fetch`" in pushed.told
    assert hub.refs() == before


def test_deleted_thread_is_refused(hub: Hub, world: World, thread: ThreadId) -> None:
    pushed = refused(world, f":{active(thread)}")

    assert pushed.errors[0].startswith(f"{active(thread)}: it would be lost")
    assert active(thread) in hub.refs()


@pytest.mark.parametrize("words", [(), ("--atomic",)])
@pytest.mark.parametrize("deletion_first", [False, True])
def test_thread_is_moved_to_the_archive(
    hub: Hub, world: World, thread: ThreadId, words: tuple[str, ...], *, deletion_first: bool
) -> None:
    last = world.finish(thread).commit.oid
    specs = [f"{last}:{archive(thread)}", f":{active(thread)}"]

    pushed = push(world, *words, *(specs[::-1] if deletion_first else specs))

    assert pushed.accepted, pushed.told
    assert hub.refs() == {archive(thread): last}


def test_plain_push_of_an_archive_leaves_no_active_ref(
    hub: Hub, world: World, thread: ThreadId
) -> None:
    last = world.finish(thread).commit.oid

    assert push(world, *PLAIN).accepted
    assert hub.refs() == {archive(thread): last}

    # A later deletion finds it done.
    assert push(world, f":{active(thread)}").accepted


def test_packed_active_ref_is_swept_as_well(
    hub: Hub, world: World, thread: ThreadId, git: Git
) -> None:
    git("pack-refs", "--all", cwd=hub.path)
    last = world.finish(thread).commit.oid

    assert push(world, *PLAIN).accepted
    assert hub.refs() == {archive(thread): last}


def test_archive_that_leaves_a_step_behind_is_refused(
    hub: Hub, world: World, thread: ThreadId, git: Git
) -> None:
    first = world.tip(thread)
    other = hub.clone()
    git("fetch", "-q", hub.path, f"{active(thread)}:{active(thread)}", cwd=Path(other.store.path))
    other.step(thread, command="mine", workdir=str(other.place))
    last = world.finish(thread).commit.oid
    assert push(other, active(thread)).accepted
    stored = hub.refs()

    for specs in ([archive(thread)], [f"{last}:{archive(thread)}", f":{active(thread)}"]):
        pushed = refused(world, "--atomic", *specs)

        assert f"{last} does not descend from {stored[active(thread)]}" in pushed.told
    assert stored[active(thread)] != first
    assert hub.refs() == stored


def test_archived_thread_is_neither_moved_nor_deleted_nor_begun_again(
    hub: Hub, world: World, thread: ThreadId, git: Git
) -> None:
    first, last = world.tip(thread), world.finish(thread).commit.oid
    assert push(world, *PLAIN).accepted
    tree = git("rev-parse", f"{last}^{{tree}}", cwd=Path(world.store.path)).strip()
    later = git("commit-tree", tree, "-p", last, "-m", "x", cwd=Path(world.store.path)).strip()

    for spec in (
        f"+{later}:{archive(thread)}",
        f"+{first}:{archive(thread)}",
        f":{archive(thread)}",
    ):
        pushed = refused(world, spec)

        assert f"{archive(thread)}: an archived thread is never " in pushed.told
    for commit in (first, last):
        pushed = refused(world, f"{commit}:{active(thread)}")

        assert f"{active(thread)}: thread {thread} has ended" in pushed.told
    assert hub.refs() == {archive(thread): last}


def test_deletion_may_come_after_the_archive(
    hub: Hub, world: World, thread: ThreadId, git: Git
) -> None:
    first, last = world.tip(thread), world.finish(thread).commit.oid
    assert push(world, archive(thread)).accepted
    # As a crash between the two leaves it.
    git("update-ref", active(thread), first, cwd=hub.path)

    assert push(world, f":{active(thread)}").accepted
    assert hub.refs() == {archive(thread): last}


def test_thread_that_ended_before_its_first_push_arrives_archived(hub: Hub, world: World) -> None:
    thread = world.begun()
    last = world.finish(thread).commit.oid

    # With litter of its own, as an interrupted archiving leaves it.
    first = world.snapshot(thread).commit.parents[0]
    assert push(world, f"{first}:{active(thread)}", f"{last}:{archive(thread)}").accepted
    assert hub.refs() == {archive(thread): last}


MEANINGLESS = {
    "refs/threads/x/y": "'x/y' is not a thread id",
    "refs/threads/01j7k9m2xnpqr5vwbcdf8g3h4t": "is not a thread id",
    "refs/archive/x": "'x' is not a thread id",
    "refs/workflows/a/b": "is not a workflow name",
    "refs/workflows/DEMO": "differs from the workflow demo in case only",
    "refs/workflows/twice": "differs from the workflow Twice in case only",
    "refs/workflows/Twice": "differs from the workflow twice in case only",
    "refs/cas/other": "uwf has no ref of that name",
    "refs/cas/nodes/x": "uwf has no ref of that name",
    "refs/Threads/01J7K9M2XNPQR5VWBCDF8G3H4T": "uwf has no ref of that name",
}


def test_name_that_means_nothing_is_refused(hub: Hub, world: World) -> None:
    thread = world.begun()
    assert push(world, "refs/workflows/demo").accepted

    pushed = refused(world, *(f"{active(thread)}:{name}" for name in MEANINGLESS))

    assert sorted(error.partition(": ")[0] for error in pushed.errors) == sorted(MEANINGLESS)
    for error in pushed.errors:
        assert MEANINGLESS[error.partition(": ")[0]] in error
    assert list(hub.refs()) == ["refs/workflows/demo"]


def test_what_belongs_to_one_store_alone_is_hidden(hub: Hub, world: World) -> None:
    thread = world.begun()

    pushed = refused(world, f"{active(thread)}:refs/uwf/kept/{thread}/x")

    assert "hidden ref" in pushed.told

    hub.set("transfer.hideRefs", "refs/nothing")
    pushed = push(world, f"{active(thread)}:refs/uwf/kept/{thread}/x")
    assert "belong to one store alone" in pushed.errors[0]


def test_mirror_that_would_delete_others_threads_is_refused(
    hub: Hub, world: World, thread: ThreadId
) -> None:
    other = hub.clone()
    other.begun()

    pushed = refused(other, "--mirror")

    assert any(error.startswith(f"{active(thread)}: it would be lost") for error in pushed.errors)
    assert hub.refs() == {active(thread): world.tip(thread)}


def test_push_is_taken_as_a_whole_or_not_at_all(hub: Hub, world: World, thread: ThreadId) -> None:
    refused(world, active(world.start()), "refs/workflows/demo", f":{active(thread)}")

    assert list(hub.refs()) == [active(thread)]


def test_branches_and_tags_pass(hub: Hub, world: World, thread: ThreadId) -> None:
    hub.set("receive.denyNonFastForwards", "false")
    commit = world.tip(thread)

    assert push(world, f"{commit}:refs/heads/main", f"{commit}:refs/tags/v1").accepted
    assert push(world, f"+{commit}~:refs/heads/main", ":refs/tags/v1").accepted
    assert hub.refs()["refs/heads/main"] != commit


def test_workflow_goes_forward_only(hub: Hub, world: World) -> None:
    world.put()
    assert push(world, "refs/workflows/demo").accepted
    other = hub.clone()
    other.put()

    rewritten = refused(other, "+refs/workflows/demo")
    deleted = refused(world, ":refs/workflows/demo")

    assert "does not descend from" in rewritten.errors[0]
    assert "it would be lost" in deleted.errors[0]


def test_of_two_pushes_at_once_one_wins_and_nothing_is_lost(hub: Hub, git: Git) -> None:
    worlds = [hub.clone() for _count in range(4)]
    thread = worlds[0].begun()
    assert push(worlds[0], active(thread)).accepted
    for each in worlds[1:]:
        git("fetch", "-q", hub.path, f"{active(thread)}:{active(thread)}", cwd=each.store.path)
    for each in worlds:
        each.step(thread, command="mine", workdir=str(each.place))
    command = ["git", "push", "hub", active(thread)]
    running = [
        subprocess.Popen(command, cwd=each.store.path, stderr=subprocess.PIPE) for each in worlds
    ]

    told = [process.communicate()[1].decode() for process in running]

    won = [number for number, process in enumerate(running) if process.returncode == 0]
    assert len(won) == 1, told
    assert hub.refs()[active(thread)] == worlds[won[0]].tip(thread)
    # The losers' commits were let in, and no ref went there: git sweeps them.
    assert git("fsck", "--strict", "--no-dangling", cwd=hub.path) == ""


def test_hook_that_finds_no_uwf_refuses(hub: Hub, world: World) -> None:
    thread = world.begun()
    hook = hub.path / "hooks" / "pre-receive"
    text = hook.read_text().replace(sys.executable, "/nowhere/python")
    hook.write_text(text.replace("-v uwf", "-v no-uwf"))

    assert "remote: error: no uwf was found" in refused(world, active(thread)).told
    assert hub.refs() == {}


def test_hook_passes_over_a_python_that_has_no_uwf(
    hub: Hub, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = world.begun()
    monkeypatch.setenv("UWF", str(Path(sys.executable).parent / "uwf"))
    bare = write_program(tmp_path / "bare-python", f'exec {sys.executable} -S "$@"')
    for hook in (hub.path / "hooks").iterdir():
        hook.write_text(hook.read_text().replace(f"python={sys.executable}", f"python={bare}"))

    assert push(world, active(thread)).accepted


@pytest.mark.parametrize("value", ["a lot", "32x", "-1", ""])
def test_limit_that_means_nothing_lets_nothing_through(hub: Hub, world: World, value: str) -> None:
    thread = world.begun()
    hub.set("uwf.maxBlobSize", value)

    pushed = refused(world, active(thread))

    assert "uwf.maxBlobSize is " in pushed.told
    assert "Traceback" not in pushed.told


def test_each_transition_is_reported_once_and_the_oldest_first(
    hub: Hub, world: World, tmp_path: Path
) -> None:
    said = tmp_path / "said it.jsonl"
    hub.set("uwf.onReceive", f"/bin/sh -c 'cat >>\"$1\"' sh '{said}'")
    thread = world.begun()
    commits = [world.tip(thread)]
    push(world, active(thread))
    world.step(thread)
    commits.append(world.tip(thread))
    world.step(thread)
    commits.append(world.tip(thread))
    push(world, active(thread))
    commits.append(world.finish(thread).commit.oid)
    push(world, *PLAIN)

    lines = [json.loads(line) for line in said.read_text().splitlines()]

    assert [line["commit"] for line in lines] == commits
    assert [line["event"] for line in lines] == ["start", "step", "step", "end"]
    assert [line["depth"] for line in lines] == [0, 1, 2, 2]
    assert [line["role"] for line in lines] == [None, "writer", "checker", None]
    assert {line["thread"] for line in lines} == {thread}
    assert lines[-1]["status"] == "completed"
    assert lines[-1]["ref"] == archive(thread)
    assert lines[0]["workflowName"] == "demo"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("/bin/sh -c 'echo no disk >&2; exit 3'", "ended with status 3: no disk"),
        ("/no/such/program", "could not be started"),
        ("'unclosed", "no closing quotation"),
    ],
)
def test_listener_that_fails_fails_no_push(hub: Hub, world: World, command: str, told: str) -> None:
    hub.set("uwf.onReceive", command)
    pushed = push(world, active(world.begun()))

    assert pushed.accepted
    assert "remote: warning: uwf.onReceive: " in pushed.told
    assert told in pushed.told


def test_hub_that_was_pushed_to_is_a_store_like_any_other(
    hub: Hub, world: World, thread: ThreadId, git: Git
) -> None:
    assert git("fsck", "--strict", cwd=hub.path) == ""
    there = replace(world, store=open_store(str(hub.path), environ=os.environ))

    there.step(thread, command="mine", workdir=str(world.place))

    git("fetch", "-q", "hub", f"{active(thread)}:{active(thread)}", cwd=Path(world.store.path))
    assert world.tip(thread) == there.tip(thread)


def over_daemon(hub: Hub) -> str:
    """Return the address of the hub behind `git daemon`, started per connection as by inetd."""
    base = shlex.quote(str(hub.place)).replace("%", "%%").replace(" ", "% ")
    daemon = f"git daemon --inetd --export-all --enable=receive-pack --base-path={base}"
    return f"ext::{daemon} %G/hub.git"


def over_ssh(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of the hub behind an ssh with an almost empty remote environment."""
    script = 'shift\nexec env -i PATH=/usr/bin:/bin /bin/sh -c "$*"'
    monkeypatch.setenv("GIT_SSH_COMMAND", write_program(hub.place / "ssh", script))
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    return f"server:{hub.path}"


@pytest.mark.parametrize("way", ["daemon", "ssh"])
@pytest.mark.parametrize("unpack_limit", ["1", "100"])
def test_rules_hold_on_every_way_in(
    hub: Hub, world: World, way: str, unpack_limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Below the limit a push is unpacked, from there on it stays a pack.
    hub.set("receive.unpackLimit", unpack_limit)
    hub.set("uwf.maxBlobSize", "1m")
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext:ssh")
    address = over_daemon(hub) if way == "daemon" else over_ssh(hub, monkeypatch)
    set_config(f"{world.store.path}/config", "remote.hub.url", address)
    thread = world.begun()

    good = push(world, active(thread))
    assert good.accepted, good.told

    world.step(thread, says({"text": "x" * 2_000_000}))
    bad = refused(world, active(thread))

    assert re.search("blob [0-9a-f]{40} takes 2m, and at most 1m may be pushed here", bad.told)
    assert "it would be lost" in push(world, f":{active(thread)}").errors[0]


def test_hooks_path_of_the_pusher_does_not_switch_the_rules_off(
    world: World, hub: Hub, thread: ThreadId, git: Git
) -> None:
    git("config", "--global", "core.hooksPath", "/etc/hooks", cwd=hub.path)
    git("config", "--global", "receive.shallowUpdate", "true", cwd=hub.path)
    before = hub.refs()

    assert "it would be lost" in refused(world, f":{active(thread)}").told
    assert hub.refs() == before


def test_push_and_verify_tell_of_a_hub_whose_rules_a_pusher_can_switch_off(
    world: World, hub: Hub, thread: ThreadId, git: Git
) -> None:
    world.step(thread)
    sound = push_remote(open_store(world.store.path), world.caller, "hub")
    git("config", "--unset", "core.hooksPath", cwd=hub.path)
    world.put(DEMO)

    told = push_remote(open_store(world.store.path), world.caller, "hub").gap

    assert sound.gap is None
    assert told is not None
    assert "does not set core.hooksPath" in told.message
    assert told.hint == f"its owner mends it: `uwf init --shared {hub.path}`"
    assert told in verify(open_store(str(hub.path)), []).notes
    assert verify(open_store(world.store.path), []).notes == ()


def test_branches_are_judged_by_the_hooks_whatever_is_pushed_alone(
    world: World, hub: Hub, git: Git
) -> None:
    at = split_files(world, 3)
    first, second, third = at.children
    world.step(first, plays)
    assert push(world, active(first)).accepted
    assert push(world, active(at.thread)).accepted
    at.finish_branches()
    assert push(world, archive(first)).accepted
    assert at.step() == "ready"
    join = at.tip.commit.oid
    forged = copy_commit(world.store, join)
    says_words("3 completed", "4 completed")(forged)

    pushed = refused(world, f"{put(world.store, forged)}:{active(at.thread)}")

    assert f"the join is not the one that follows, which is {join}" in pushed.told
    # With the join come the branches that the hub has no refs of.
    assert push(world, active(at.thread)).accepted
    assert push(world, archive(second), archive(third)).accepted
    assert git("fsck", "--strict", "--no-dangling", cwd=hub.path) == ""
    assert verify(open_store(str(hub.path)), []).troubles == ()
