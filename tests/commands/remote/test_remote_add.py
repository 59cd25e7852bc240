from commands.world import World

from uwf_git.commands.remote.push_plan import add_remote_at


def test_a_url_is_kept_as_it_was_given_and_shown_without_a_password(world: World) -> None:
    remote = add_remote_at(world.store, world.caller, "origin", "https://me:secret@host/x")
    world.reopen()
    assert world.store.config.get("remote.origin.url") == "https://me:secret@host/x"
    assert remote.shown == "https://host/x"
