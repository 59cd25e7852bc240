import os
from pathlib import Path

import pytest
from commands.sharing import Site, refs_of, share
from commands.world import World
from refusing import refuses

from uwf_git.commands.remote.fetch import clone_store
from uwf_git.model.names import ThreadId
from uwf_git.store.remotes.remotes import choose_remote
from uwf_git.store.remotes.transport import RemoteFailed
from uwf_git.store.store import find_store


@pytest.fixture
def shared(world: World, hub: Path) -> tuple[Site, ThreadId]:
    site, thread = share(world, str(hub))
    site.push()
    return site, thread


def test_a_clone_is_a_store_that_knows_where_it_came_from(
    shared: tuple[Site, ThreadId], world: World, hub: Path
) -> None:
    cloned = clone_store(world.caller, "../hub.git", "deep/copy.git")
    assert cloned.path == f"{world.place}/deep/copy.git"
    assert refs_of(Path(cloned.path)) == shared[0].refs()
    store = find_store(cloned.path, "/", os.environ, create=False)
    assert choose_remote(store.config, None).url == str(hub)
    assert store.config.get_flag("uwf.store", default=False)
    assert os.listdir(world.place / "deep") == ["copy.git"]


def test_a_clone_has_the_name_at_the_end_of_the_url(
    shared: tuple[Site, ThreadId], world: World, hub: Path
) -> None:
    assert clone_store(world.caller, f"file://{hub}", None).path == f"{world.place}/hub.git"
    with refuses("place-taken", match=str(world.place)):
        clone_store(world.caller, str(hub), None)
    with refuses("bad-remote-url", match="no name"):
        clone_store(world.caller, "/", None)


def test_a_clone_in_an_empty_folder_keeps_it_private_and_where_it_is(
    shared: tuple[Site, ThreadId], world: World, hub: Path
) -> None:
    folder = world.place / "private"
    folder.mkdir(mode=0o700)
    with refuses("place-taken", match="that you are in"):
        clone_store(world.caller._replace(cwd=str(folder)), str(hub), ".")
    (world.place / "link").symlink_to("private")
    assert clone_store(world.caller, str(hub), "link").path == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_clone_that_fails_leaves_nothing_behind(world: World, tmp_path: Path) -> None:
    for path in (None, "deep/copy.git"):
        with pytest.raises(RemoteFailed):
            clone_store(world.caller, f"{tmp_path}/nothing.git", path)
    assert [each for each in os.listdir(world.place) if each != "deep"] == []
    assert os.listdir(world.place / "deep") == []
