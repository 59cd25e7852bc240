from pathlib import Path

import pytest
from commands.world import World
from store.due import make_due

from uwf_git.commands.admin import set_setting
from uwf_git.commands.after import follow_up, warn_of_guess
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import GitConfig
from uwf_git.store.git.program import find_committer
from uwf_git.store.packing import count_files


@pytest.fixture
def thread(world: World) -> ThreadId:
    return world.begun()


def packs(world: World) -> int:
    return count_files(world.store).packs


def test_failure_of_the_listener_is_returned_and_the_store_is_packed(
    world: World, thread: ThreadId
) -> None:
    make_due(world.store.path)
    listener = world.program("exit 3", name="listener")
    set_setting(world.store, "uwf.onEvent", listener)
    world.reopen()
    world.step(thread)

    problem = follow_up(world.store, world.caller.environ)

    assert problem is not None
    assert "ended with status 3" in problem
    assert packs(world) == 1
    assert follow_up(world.store, world.caller.environ) is None


def test_transition_is_announced_once(world: World, thread: ThreadId) -> None:
    listener = world.program('cat >>"$0.heard"', name="listener")
    set_setting(world.store, "uwf.onEvent", listener)
    world.reopen()
    world.step(thread)
    for _ in range(2):
        assert follow_up(world.store, world.caller.environ) is None

    assert len(Path(f"{listener}.heard").read_text().splitlines()) == 3


def test_a_guessed_committer_is_warned_of_once_in_a_store(world: World) -> None:
    assert warn_of_guess(world.store, {}) is None  # nothing was written yet
    world.begun()
    warning = warn_of_guess(world.store, {})
    assert warning is not None
    assert find_committer(world.store.config, {}).identity.decode() in warning
    assert warn_of_guess(world.store, {}) is None
    world.reopen()
    world.begun()
    assert warn_of_guess(world.store, {}) is None


@pytest.mark.parametrize(
    "settings", [{"user.email": ["a@x.y"]}, {"user.useconfigonly": ["true"]}], ids=str
)
def test_nobody_is_warned_where_nothing_was_guessed(
    world: World, settings: dict[str, list[str]]
) -> None:
    world.begun()
    assert warn_of_guess(world.store._replace(config=GitConfig(settings)), {}) is None
