from pathlib import Path

from commands.sharing import make_hub, share
from commands.world import World

from uwf_git.commands.remote.push_plan import list_remote_rows
from uwf_git.store.git.config import set_config


def test_a_row_says_where_and_how_much(world: World, tmp_path: Path) -> None:
    assert list_remote_rows(world.store) == []
    hub = make_hub(tmp_path)
    site, thread = share(world, str(hub))
    site.push()
    site.end(thread)
    world.start()
    site.push()
    set_config(f"{site.path}/config", "remote.b.url", "https://me:secret@host/x")
    set_config(f"{site.path}/config", "remote.b.pushurl", "https://me:secret@other/x")
    world.reopen()
    nothing = {"threads": 0, "archived": 0, "workflows": 0}
    assert list_remote_rows(world.store) == [
        {"name": "b", "url": "https://host/x", "pushUrl": "https://other/x", **nothing},
        {"name": "origin", "url": str(hub), "threads": 1, "archived": 1, "workflows": 1},
    ]
