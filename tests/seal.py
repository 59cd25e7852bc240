"""The sealed environment of a test, the closed network, and the search for leftovers of a run.

The person that runs the tests has the same home, settings and processes afterwards. The fixtures
that use this are in conftest.py.
"""

import ipaddress
import os
import pwd
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

START_MS = 1_760_000_000_000
"""When every test begins: 2025-10-09 08:53:20 UTC, in milliseconds."""

_DATE = f"{START_MS // 1000} +0000"

# Nothing listens on the discard port, so a child that goes through a proxy is refused at once.
_NOWHERE = "http://127.0.0.1:9"

_PINNED = {
    "COLUMNS": "80",
    "EDITOR": "false",
    "GIT_ASKPASS": "false",
    "GIT_AUTHOR_DATE": _DATE,
    "GIT_AUTHOR_EMAIL": "author@example.com",
    "GIT_AUTHOR_NAME": "A U Thor",
    "GIT_COMMITTER_DATE": _DATE,
    "GIT_COMMITTER_EMAIL": "committer@example.com",
    "GIT_COMMITTER_NAME": "C O Mitter",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_SSH_COMMAND": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
    "LINES": "24",
    "PAGER": "cat",
    "TERM": "dumb",
    "TZ": "UTC",
    "VISUAL": "false",
    "all_proxy": _NOWHERE,
    "http_proxy": _NOWHERE,
    "https_proxy": _NOWHERE,
    "no_proxy": "localhost,127.0.0.1,::1",
}

_REMOVED_PREFIXES = ("GIT_", "UWF_", "XDG_", "LC_")
_REMOVED_SUFFIXES = ("_API_KEY", "_TOKEN", "_SECRET", "_proxy", "_PROXY")
_REMOVED = {"CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "LANGUAGE", "NO_COLOR", "PY_COLORS"}

# The agents' own gc must not outlive the git that started it; the branch name keeps git quiet.
_GITCONFIG = "[gc]\n\tautoDetach = false\n[init]\n\tdefaultBranch = main\n"


def sealed_environment(inherited: Mapping[str, str], *, place: Path) -> dict[str, str]:
    """Return the environment of a test that lives in *place*.

    What git, uwf, editors, pagers, colours and keys would take from the machine is replaced or
    gone; the rest (PATH, certificates, Python's own settings) is inherited.
    """
    kept = {name: value for name, value in inherited.items() if not _is_removed(name)}
    return kept | _PINNED | places(place)


def _is_removed(name: str) -> bool:
    return (
        name in _REMOVED or name.startswith(_REMOVED_PREFIXES) or name.endswith(_REMOVED_SUFFIXES)
    )


def places(place: Path) -> dict[str, str]:
    """Return the variables that say where a test lives."""
    home = f"{place}/home"
    return {
        "GIT_CONFIG_GLOBAL": f"{home}/.gitconfig",
        "HOME": home,
        "TMPDIR": f"{place}/tmp",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_RUNTIME_DIR": f"{home}/.run",
        "XDG_STATE_HOME": f"{home}/.local/state",
    }


def furnish(place: Path) -> None:
    """Make the directories that `places` speaks of, and nothing in them but git's settings."""
    for directory in (place, place / "home", place / "tmp"):
        directory.mkdir()
    (place / "home" / ".gitconfig").write_text(_GITCONFIG)


@contextmanager
def closed_network() -> Iterator[None]:
    """Fail whatever in this process reaches beyond the machine.

    The failure is pytest's own, which no `except Exception` can take for a network that is down.
    """
    with (
        mock.patch.multiple(
            socket.socket,
            connect=_guarded(socket.socket.connect),
            connect_ex=_guarded(socket.socket.connect_ex),
            sendto=_guarded(socket.socket.sendto),
        ),
        mock.patch.object(socket, "getaddrinfo", _resolve_here_only(socket.getaddrinfo)),
    ):
        yield


def _guarded(original: Callable[..., object]) -> Callable[..., object]:
    def guarded(connection: socket.socket, *args: object) -> object:
        address = args[-1] if args else None
        # Unix sockets have paths for addresses; they cannot leave the machine.
        if isinstance(address, tuple) and not _is_here(address[0]):
            pytest.fail(f"a test reached for the network: {address[0]}")
        return original(connection, *args)

    return guarded


def _resolve_here_only(original: Callable[..., object]) -> Callable[..., object]:
    def resolve(host: object, *args: object, **kwargs: object) -> object:
        # git and uwf ask for the domain of this machine, for the address of who set none.
        if host not in {None, socket.gethostname()} and not _is_here(host):
            pytest.fail(f"a test asked the network for {host!r}")
        return original(host, *args, **kwargs)

    return resolve


def _is_here(host: object) -> bool:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    if name in {"", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def default_stores() -> list[Path]:
    """List the stores that uwf would use for the person that runs the tests."""
    homes = {Path.home(), Path(pwd.getpwuid(os.getuid()).pw_dir)}
    return sorted(home / ".uwf" for home in homes)


def snapshot(directory: Path) -> dict[str, tuple[int, int]]:
    """Note everything below *directory*, with size and time; nothing if it is not there."""
    paths = [directory, *directory.rglob("*")] if directory.exists() else []
    stats = {str(path): path.lstat() for path in paths}
    return {path: (stat.st_mtime_ns, stat.st_size) for path, stat in stats.items()}


def changed(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """List the paths that came, went or changed between two snapshots."""
    return sorted(
        path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
    )


def survivors(homes: Path, *, grace_s: float) -> dict[int, tuple[str, str]]:
    """Find processes that still live with a home below *homes*, once *grace_s* has passed.

    The value is the command and the home. A process inherits its home from the test that started
    it, however many parents have died in between. Where there is no /proc nothing is found.
    """
    deadline = time.monotonic() + grace_s
    while found := _living(homes):
        if time.monotonic() >= deadline:
            break
        time.sleep(0.05)
    return found


def _living(homes: Path) -> dict[int, tuple[str, str]]:
    marker = f"HOME={homes}/".encode()
    found: dict[int, tuple[str, str]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").strip()
        except OSError:  # it ended just now, or another user owns it
            continue
        home = next((each for each in variables if each.startswith(marker)), None)
        if home is not None and int(process.name) != os.getpid():
            found[int(process.name)] = (command.decode(errors="replace"), home[5:].decode())
    return found


def end(pid: int) -> None:
    """Kill a survivor, if it is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
