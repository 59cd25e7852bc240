from pathlib import Path

from commands.sharing import make_hub, share
from commands.world import World
from refusing import refuses

from uwf_git.commands.remote.push_plan import remove_remote
from uwf_git.store.git.config import set_config
from uwf_git.store.remotes.remotes import list_remotes


def test_what_was_seen_there_goes_and_what_is_here_stays(world: World, tmp_path: Path) -> None:
    site, _thread = share(world, str(make_hub(tmp_path)))
    site.push()
    before = site.refs()
    world.reopen()
    assert remove_remote(world.store, "origin").name == "origin"
    world.reopen()
    assert list_remotes(world.store.config) == []
    assert site.refs("uwf/remotes/origin/threads", "uwf/remotes/origin/workflows") == {}
    assert site.refs() == before
    with refuses("no-such-remote"):
        remove_remote(world.store, "origin")


def test_a_remote_of_the_user_s_is_not_this_store_s_to_remove(world: World) -> None:
    set_config(world.caller.environ["GIT_CONFIG_GLOBAL"], "remote.mine.url", "/x")
    world.reopen()
    assert [remote.name for remote in list_remotes(world.store.config)] == ["mine"]
    with refuses("no-such-remote"):
        remove_remote(world.store, "mine")
