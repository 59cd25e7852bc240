"""The file that opens the page."""

import os
import stat
from pathlib import Path

from commands.world import World

from uwf_git.web.ui.answers import hold_redirect


def test_file_is_the_users_own_and_goes_at_the_end(world: World) -> None:
    address = "http://127.0.0.1:1/#token"
    with hold_redirect(world.store, address) as path:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert f"url={address}" in Path(path).read_text()

    assert not os.path.exists(path)


def test_file_of_a_killed_server_is_removed(world: World) -> None:
    left = Path(world.store.local_path("ui-4194305.html"))
    left.parent.mkdir(exist_ok=True)
    left.write_text("old")
    other = left.with_name("ui-x.html")
    other.write_text("not ours")

    with hold_redirect(world.store, "http://127.0.0.1:1/#token"):
        assert not left.exists()

    assert other.exists()
