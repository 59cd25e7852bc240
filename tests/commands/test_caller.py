import os

from commands.world import World
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.commands.caller import Caller
from uwf_git.store.git.config import GitConfig
from uwf_git.store.git.program import find_committer
from uwf_git.store.store import Store, open_store


def store_of(**values: str) -> Store:
    config = GitConfig({f"user.{name}": [value] for name, value in values.items()})
    return fresh_store()._replace(config=config)


def test_git_s_own_variables_name_the_committer() -> None:
    environ = {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com", "USER": "x"}

    found = find_committer(store_of(name="Config", email="c@example.com").config, environ).identity

    assert found == b"Ada <ada@example.com>"


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


def test_name_that_git_would_refuse_is_cleaned() -> None:
    environ = {"GIT_COMMITTER_NAME": "a<b>\nc", "GIT_COMMITTER_EMAIL": "<>"}

    assert find_committer(fresh_store().config, environ).identity == b"a b c <unknown>"


def test_impossible_signing_is_reported_before_work_is_done(world: World) -> None:
    config = GitConfig({"commit.gpgsign": ["true"], "gpg.format": ["ssh"]})
    store = world.store._replace(config=config)

    with refuses("cannot-sign", match=r"user\.signingKey names no key"):
        world.caller.check_signing(store)
    with refuses("cannot-sign"):
        world.caller.signing(store)
