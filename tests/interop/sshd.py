"""A real sshd for one connection at a time, where one is installed: it listens at no port."""

import os
import pwd
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from programs import write_program
from store.signing_keys import make_ssh_key

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

NEEDS_SSHD = pytest.mark.skipif(SSHD is None, reason="there is no sshd on this machine")

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
    for name in ("host", "key", "other"):
        make_ssh_key(place / name)
    (place / "config").write_text(CONFIG.format(place=place))
    # As the user's own settings would come from the home that the system knows.
    sealed = [f"{name}={environ[name]}" for name in ("HOME", "PATH", "GIT_CONFIG_NOSYSTEM")]
    write_program(place / "forced", f'exec env {shlex.join(sealed)} sh -c "$SSH_ORIGINAL_COMMAND"')
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


def reach_sshd(place: Path, environ: dict[str, str]) -> str:
    """Return the ssh command that reaches a server of its own; skip where sshd does not run."""
    command = serve(place, environ)
    name = pwd.getpwuid(os.getuid()).pw_name
    tried = f"{command}/key {name}@there echo hello"
    ran = subprocess.run(["sh", "-c", tried], capture_output=True, text=True, check=False)
    if ran.stdout != "hello\n":
        pytest.skip(f"sshd does not run here: {ran.stderr[-300:]}")
    return command
