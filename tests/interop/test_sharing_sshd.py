"""A hub behind a real sshd, where one is installed; `test_sharing_transports` needs none."""

import os
import pwd
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands.sharing import another, refs_of, share
from commands.world import World
from store.signing_keys import make_ssh_key, public_half

from uwf_git.commands.admin.init import init_shared
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.store.remotes.transport_errors import RemoteFailed

Git = Callable[..., str]

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
BAD = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")

pytestmark = pytest.mark.skipif(SSHD is None, reason="there is no sshd on this machine")

CONFIG = """\
HostKey {place}/host
AuthorizedKeysFile {place}/key.pub
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
ForceCommand {place}/forced
"""

# Who has root's rights needs a user for sshd, and its folder: this one sees both, and only it.
AS_ROOT = """\
unshare -m sh -c 'mount --bind {place}/passwd /etc/passwd &&
mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec {sshd}'
"""


def serve(place: Path, environ: dict[str, str]) -> str:
    """Return the ssh command that reaches a server of its own, which ends with it."""
    place.mkdir()
    make_ssh_key(place / "host")
    make_ssh_key(place / "key")
    make_ssh_key(place / "other")
    (place / "config").write_text(CONFIG.format(place=place))
    # As the user's own settings would come from the home that the system knows.
    sealed = [f"{name}={environ[name]}" for name in ("HOME", "PATH", "GIT_CONFIG_NOSYSTEM")]
    forced = f'#!/bin/sh\nexec env {shlex.join(sealed)} sh -c "$SSH_ORIGINAL_COMMAND"\n'
    (place / "forced").write_text(forced)
    (place / "forced").chmod(0o755)
    sshd = f"{SSHD} -i -e -f {place}/config"
    if os.getuid() == 0:
        users = Path("/etc/passwd").read_text()
        (place / "passwd").write_text(f"sshd:x:100:65534::/run/sshd:/bin/false\n{users}")
        (place / "as-root").write_text(AS_ROOT.format(place=place, sshd=sshd))
        sshd = f"sh {place}/as-root"
    options = f"-F none -o IdentitiesOnly=yes -o BatchMode=yes -o UserKnownHostsFile={place}/known"
    options += (
        f" -o StrictHostKeyChecking=no -o LogLevel=ERROR -o ProxyCommand='{sshd} 2>/dev/null'"
    )
    return f"ssh {options} -i {place}"


@pytest.fixture
def command(tmp_path: Path) -> str:
    command = serve(tmp_path / "ssh", dict(os.environ))
    name = pwd.getpwuid(os.getuid()).pw_name
    tried = f"{command}/key {name}@there echo hello"
    ran = subprocess.run(["sh", "-c", tried], capture_output=True, text=True, check=False)
    if ran.stdout != "hello\n":
        pytest.skip(f"sshd does not run here: {ran.stderr[-300:]}")
    return command


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return Path(init_shared("hub.git", str(tmp_path), os.environ, python=sys.executable).store.path)


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

    tip = site.find(f"archive/{thread}")
    assert tip is not None
    assert world.store.refs.create(f"refs/threads/{BAD}", tip)
    failure = site.push().failure()
    assert isinstance(failure, Refused)
    assert failure.code == "push-refused"
    assert "points at a commit of thread" in failure.message
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
