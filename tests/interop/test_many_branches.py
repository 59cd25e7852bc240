"""A hundred branches: split, played, joined, checked by git, and shared through a hub."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands.flows import finish, push_costs, split_files
from interop.hub import Hub, make_hub

from uwf_git.commands.remote.clone import clone_store
from uwf_git.commands.remote.push import push_remote
from uwf_git.commands.verify.verify import verify
from uwf_git.store.store import open_store

Git = Callable[..., str]
MANY = 100


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return make_hub(tmp_path)


def test_a_hundred_branches_are_joined_shared_and_sound(hub: Hub, git: Git) -> None:
    world = hub.clone()
    at = split_files(world, MANY)
    assert len(at.children) == MANY
    at.finish_branches()
    assert at.step() == "ready"
    assert len(at.tip.commit.parents) == 1 + MANY
    finish(world, at.thread)
    assert verify(world.store, []).troubles == ()

    assert push_remote(world.store, world.caller, "hub", [at.thread]).failure() is None

    assert git("fsck", "--strict", "--no-dangling", cwd=hub.path) == ""
    assert verify(open_store(str(hub.path)), []).troubles == ()
    path = str(hub.place / "other.git")
    assert clone_store(world.caller, str(hub.path), path).fetched.failure() is None
    git("gc", "--quiet", cwd=path)
    assert verify(open_store(path), []).troubles == ()


def test_a_push_of_many_branches_costs_at_most_three_of_one_thread(hub: Hub) -> None:
    many, one = push_costs(hub.clone(), hub.path, 32)

    assert many < 3 * one
