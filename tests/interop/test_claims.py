"""Claims at a hub: pushes of them alone are judged by the hook script, all others by uwf."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands.world import World
from interop.honest_flows import git
from interop.hub import Hub, hub, push, refused, world
from programs import write_program

from uwf_git.commands.remote.fetch import clone_store, fetch_remote
from uwf_git.store.store import open_store

__all__ = ["hub", "world"]

ID = "01J7K9M2XNPQR5VWBCDF8G3H4T"
CLAIM = f"refs/claims/{ID}"
MOST = 4096


Started = Callable[[], list[str]]


@pytest.fixture
def started(hub: Hub) -> Started:
    """Replace the Python of the hooks by one that notes what it runs; return what it did so far."""
    log, recorder = hub.place / "started", hub.place / "python"
    for name in ("pre-receive", "post-receive"):
        hook = hub.path / "hooks" / name
        python = hook.read_text().partition("python=")[2].partition("\n")[0]
        write_program(recorder, f'echo "$5" >>"{log}"\nexec {python} "$@"')
        hook.write_text(hook.read_text().replace(f"python={python}\n", f"python={recorder}\n"))
    return lambda: log.read_text().split() if log.exists() else []


def blob(world: World, content: str) -> str:
    return git("hash-object", "-w", "--stdin", cwd=world.store.path, stdin=content).strip()


def test_claims_alone_start_no_python(hub: Hub, world: World, started: Started) -> None:
    first, second = blob(world, "x" * MOST), blob(world, "")
    other = CLAIM[:-1] + "V"

    assert push(world, f"{first}:{CLAIM}", f"{second}:{other}").accepted
    assert push(world, f"--force-with-lease={CLAIM}:{first}", f"{second}:{CLAIM}").accepted
    assert not push(world, f"--force-with-lease={CLAIM}:{first}", f"{first}:{CLAIM}").accepted
    assert hub.refs() == {CLAIM: second, other: second}
    assert push(world, f":{CLAIM}", f":{other}").accepted

    assert started() == []
    assert hub.refs() == {}


def test_a_claim_with_a_thread_is_judged_by_uwf(hub: Hub, world: World, started: Started) -> None:
    thread = world.begun()
    active = f"refs/threads/{thread}"

    assert push(world, f"{blob(world, '{}')}:{CLAIM}", f"{active}:{active}").accepted

    assert started() == ["pre-receive"]
    assert set(hub.refs()) == {CLAIM, active}
    world.step(thread)
    large = blob(world, "x" * (MOST + 1))
    wrong = refused(world, "--force", f"{large}:{CLAIM}", f"{active}:{active}")

    assert [error for error in wrong.errors if "a claim has at most 4096 bytes" in error]
    assert hub.refs()[active] != world.snapshot(thread).commit.oid


@pytest.mark.parametrize("size", [MOST + 1, 100_000_000])
def test_a_large_blob_is_no_claim(hub: Hub, world: World, size: int) -> None:
    # git would send the content of a text again and again.
    assert len(refused(world, f"{blob(world, 'x' * size)}:{CLAIM}").errors) == 1
    assert hub.refs() == {}


@pytest.mark.parametrize("kind", ["tree", "commit", "tag"])
def test_only_a_blob_is_a_claim(hub: Hub, world: World, kind: str) -> None:
    place = world.store.path
    made: dict[str, str] = {"commit": world.snapshot(world.begun()).commit.oid}
    made["tree"] = git("rev-parse", f"{made['commit']}^{{tree}}", cwd=place).strip()
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    git(*who, "tag", "-am", "x", "v1", made["commit"], cwd=place)
    made["tag"] = git("rev-parse", "v1", cwd=place).strip()

    assert "is not a blob" in refused(world, f"{made[kind]}:{CLAIM}").errors[0]
    assert hub.refs() == {}


@pytest.mark.parametrize("name", [ID.lower(), f"8{ID[1:]}", f"{ID}0", f"{ID}/a"])
def test_a_claim_has_the_name_of_a_thread(hub: Hub, world: World, name: str) -> None:
    pushed = refused(world, f"{blob(world, '{}')}:refs/claims/{name}")

    assert "is not a thread id" in pushed.errors[0]
    assert hub.refs() == {}


def test_python_starts_after_a_push_for_an_archive_beside_its_active_ref_or_a_listener(
    hub: Hub, world: World, started: Started, tmp_path: Path
) -> None:
    thread = world.begun()
    plain = (f"refs/{folder}/*:refs/{folder}/*" for folder in ("threads", "archive"))
    push(world, *(words := list(plain)))
    assert started() == ["pre-receive"]
    world.finish(thread)
    assert push(world, *words).accepted
    assert started() == ["pre-receive"] * 2 + ["post-receive"]
    # Which removes the active ref that plain git leaves.
    assert set(hub.refs()) == {f"refs/archive/{thread}"}
    ended = world.begun()
    push(world, f"refs/threads/{ended}")
    world.finish(ended)
    assert push(world, f"refs/archive/{ended}", f":refs/threads/{ended}").accepted
    assert started() == ["pre-receive"] * 2 + ["post-receive"] + ["pre-receive"] * 2
    said = tmp_path / "said"
    hub.set("uwf.onReceive", f"/bin/sh -c 'cat >\"$1\"' sh '{said}'")
    other = world.begun()
    assert push(world, *words).accepted
    assert json.loads(said.read_text())["thread"] == other


def test_no_fetch_and_no_clone_takes_claims(hub: Hub, world: World) -> None:
    thread = world.begun()
    push(world, f"{blob(world, 'held')}:{CLAIM}", f"refs/threads/{thread}")
    path = str(hub.place / "copy.git")

    cloned = clone_store(world.caller, str(hub.path), path)

    assert cloned.fetched.failure() is None
    assert cloned.fetched.ignored == []
    copy = open_store(path, environ=os.environ)
    assert fetch_remote(copy, world.caller, None).failure() is None
    assert fetch_remote(copy, world.caller, None, [thread]).failure() is None
    assert "claims" not in git("for-each-ref", cwd=path)
    git("fetch", "-q", "origin", cwd=path)
    assert "claims" not in git("for-each-ref", cwd=path)
