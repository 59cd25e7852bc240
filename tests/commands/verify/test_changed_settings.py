from commands.world import World

from uwf_git.commands.verify.files import note_changed_settings
from uwf_git.store.config_watch import watch_config
from uwf_git.store.git.config import set_config


def test_changed_setting_is_noted_once(world: World) -> None:
    watch_config(world.store)
    set_config(f"{world.store.path}/config", "core.hooksPath", "/elsewhere")

    (note,) = note_changed_settings(world.store)
    assert "core.hookspath" in note.message
    assert f"git -C {world.store.path} config --get-all core.hookspath" in note.hint
    assert note_changed_settings(world.store) == ()
