import pytest
from commands.sharing import make_hub
from commands.world import World
from refusing import refuses

from uwf_git.commands.remote.push import push_remote
from uwf_git.commands.remote.push_plan import add_remote_at, find_first_push
from uwf_git.store.git.config import set_config


@pytest.fixture
def project(world: World) -> World:
    """Return a world whose store has a work tree, and a remote."""
    hub = make_hub(world.place.parent / "first")
    add_remote_at(world.store, world.caller, "origin", str(hub))
    set_config(f"{world.store.path}/config", "core.bare", "false")
    world.reopen()
    return world


def test_first_push_of_a_project_is_described_until_it_was_made(project: World) -> None:
    store = project.store
    assert find_first_push(store, None) is None  # there is nothing to send
    thread, _other = project.begun(), project.begun()
    first = find_first_push(store, None)
    assert first is not None
    assert (first.remote.name, first.threads, first.workflows) == ("origin", 2, 1)
    assert first.url.endswith("hub.git")
    one = find_first_push(store, "origin", [thread])
    assert one is not None
    assert (one.threads, one.workflows) == (1, 0)
    push_remote(store, project.caller, None, [thread])
    assert find_first_push(store, None) is None


def test_push_from_a_bare_store_needs_no_word(project: World) -> None:
    set_config(f"{project.store.path}/config", "core.bare", "true")
    project.reopen()
    project.begun()
    assert find_first_push(project.store, None) is None


def test_a_mirror_is_refused_before_anything_is_asked(project: World) -> None:
    project.begun()
    set_config(f"{project.store.path}/config", "remote.origin.mirror", "true")
    project.reopen()
    with refuses("mirror-store"):
        find_first_push(project.store, None)
