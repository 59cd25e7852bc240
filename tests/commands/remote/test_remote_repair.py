from pathlib import Path

from commands.world import World
from refusing import refuses

from uwf_git.commands.remote.push_plan import add_remote_at, repair_remotes
from uwf_git.store.git.config import add_config, set_config
from uwf_git.store.remotes.mirror import list_mirrors


def make_mirrors(world: World, *names: str) -> None:
    for name in names:
        set_config(f"{world.store.path}/config", f"remote.{name}.mirror", "true")
        set_config(f"{world.store.path}/config", f"remote.{name}.url", "/x")
    world.reopen()


def test_every_mirror_is_repaired_or_the_one_that_is_named(world: World) -> None:
    make_mirrors(world, "a", "b", "c")
    assert repair_remotes(world.store, world.caller, "b") == ["b"]
    world.reopen()
    assert list_mirrors(world.store.config) == ["a", "c"]
    assert repair_remotes(world.store, world.caller, "b") == []
    assert repair_remotes(world.store, world.caller, None) == ["a", "c"]
    world.reopen()
    assert repair_remotes(world.store, world.caller, None) == []
    with refuses("no-such-remote"):
        repair_remotes(world.store, world.caller, "d")


def test_settings_of_the_user_are_named_and_not_changed(world: World, tmp_path: Path) -> None:
    add_remote_at(world.store, world.caller, "origin", "/x")
    config = tmp_path / "gitconfig"
    add_config(str(config), "remote.origin.fetch", "+refs/*:refs/*")
    before = config.read_text()
    caller = world.caller._replace(environ={"GIT_CONFIG_GLOBAL": str(config)})
    world.caller = caller
    world.reopen()
    with refuses("mirror-elsewhere", match="origin is a mirror by settings outside"):
        repair_remotes(world.store, caller, None)
    assert config.read_text() == before


def test_in_a_mirror_nothing_is_recorded(world: World) -> None:
    thread = world.begun()
    make_mirrors(world, "origin")
    before = world.store.refs.find(f"refs/threads/{thread}")
    for record in (world.begun, lambda: world.step(thread)):
        with refuses("mirror-store"):
            record()
    assert world.store.refs.find(f"refs/threads/{thread}") == before
