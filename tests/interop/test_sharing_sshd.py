"""A hub behind a real sshd, where one is installed; `test_sharing_transports` needs none."""

import os
import pwd
from pathlib import Path

import pytest
from commands.sharing import another, refs_of, share
from commands.world import Git, World
from interop.hub import make_hub, push_what_is_wrong
from interop.sshd import NEEDS_SSHD, reach_sshd
from store.signing_keys import public_half

from uwf_git.store.remotes.transport import RemoteFailed

pytestmark = NEEDS_SSHD


@pytest.fixture
def command(tmp_path: Path) -> str:
    return reach_sshd(tmp_path / "ssh", dict(os.environ))


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return make_hub(tmp_path).path


def reach(world: World, command: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_SSH_COMMAND", f"{command}/{key}")
    world.caller = world.caller._replace(environ=dict(os.environ))


def test_thread_goes_over_ssh_and_what_is_wrong_comes_back(
    command: str, hub: Path, world: World, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach(world, command, "key", monkeypatch)
    url = f"{pwd.getpwuid(os.getuid()).pw_name}@there:{hub}"
    site, thread = share(world, url)
    assert site.push().failure() is None
    other = another(world, url)
    other.end(thread)
    assert other.push().failure() is None
    assert [each.event for each in site.fetch().reconciled] == ["archived"]

    push_what_is_wrong(site, f"archive/{thread}")
    assert set(refs_of(hub)) == {f"archive/{thread}", "workflows/demo"}
    assert git("fsck", "--strict", cwd=hub) == ""


def test_key_that_may_not_come_in_is_one_line(
    command: str, hub: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach(world, command, "other", monkeypatch)
    site, _thread = share(world, f"ssh://{pwd.getpwuid(os.getuid()).pw_name}@there{hub}")
    for act in (site.push, site.fetch):
        with pytest.raises(RemoteFailed) as failed:
            act()
        assert "Permission denied" in failed.value.message
        assert "\n" not in failed.value.message
    assert public_half(hub.parent / "ssh" / "other") not in failed.value.message
