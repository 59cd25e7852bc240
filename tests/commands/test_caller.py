import os

import pytest
from commands.world import World
from refusing import refuses
from store.small_packs import make_due

from uwf_git.commands.admin import set_setting
from uwf_git.commands.after import follow_up, warn_of_guess
from uwf_git.commands.caller import Caller
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import GitConfig
from uwf_git.store.git.program import find_committer
from uwf_git.store.packing import count_files
from uwf_git.store.store import open_store


def test_identity_and_signature_that_a_conditional_include_sets_are_used(world: World) -> None:
    home = world.place
    settings = (
        "[user]\n\tname = Work\n\temail = w@work\n[commit]\n\tgpgsign\n[gpg]\n\tformat = ssh\n"
    )
    (home / "at-work").write_text(settings)
    (home / ".gitconfig").write_text(
        f'[user]\n\tname = Private\n[includeIf "gitdir:{world.store.path}"]\n\tpath = at-work\n'
    )
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    store = open_store(world.store.path, environ=environ)

    assert find_committer(store.config, environ).identity == b"Work <w@work>"
    with refuses("cannot-sign"):
        Caller(lambda: 0, environ, "/").check_signing(store)


def test_impossible_signing_is_reported_before_work_is_done(world: World) -> None:
    config = GitConfig({"commit.gpgsign": ["true"], "gpg.format": ["ssh"]})
    store = world.store._replace(config=config)

    with refuses("cannot-sign", match=r"user\.signingKey names no key"):
        world.caller.check_signing(store)
    with refuses("cannot-sign"):
        world.caller.signing(store)


def test_failure_of_the_listener_is_returned_and_the_store_is_packed(
    world: World, thread: ThreadId
) -> None:
    make_due(world.store.path)
    set_setting(world.store, "uwf.onEvent", world.program("exit 3", name="listener"))
    world.reopen()
    world.step(thread)

    problem = follow_up(world.store, world.caller.environ)

    assert problem is not None
    assert "ended with status 3" in problem
    assert count_files(world.store).packs == 1
    assert follow_up(world.store, world.caller.environ) is None


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
