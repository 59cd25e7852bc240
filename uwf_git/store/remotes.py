"""Remotes: the other repositories that this one shares with, as git config has them.

Owns: the settings below ``remote.<name>.``, and which remote is meant.
Knows nothing of: connections, refs.
Always true: what it writes is what git reads, so plain `git fetch` and `git push` work as well;
and fetching never writes below refs/threads/ (with pruning, threads that were never pushed would
be deleted), but below refs/uwf/remotes/<name>/.
Source: git-config(1), `remote.<name>.*`; git-check-ref-format(1).
"""

import os
import re
from typing import NamedTuple

from uwf_git.errors import BadUsage, Refused
from uwf_git.store.config_text import edit_config, remove_section
from uwf_git.store.git_config import GitConfig, read_config_file, rewrite_config
from uwf_git.store.remote_url import RemoteUrl, parse_remote_url, rewrite_url, shown_url
from uwf_git.store.store import Store

TRACKING = "refs/uwf/remotes/"
SHARED = ("threads", "archive", "workflows")
"""The folders below refs/ that travel."""

_DEFAULT = "origin"
_URL = ".url"
# What git-check-ref-format forbids; surrogates are bytes that are no UTF-8.
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]|\.\.|@\{")


class BadRemoteName(BadUsage):
    """git would not take the name for a remote."""

    code = "bad-remote-name"

    def __init__(self, name: str) -> None:
        shown = name[:60] if name.isprintable() and name else repr(name[:60])
        super().__init__(
            f"{shown} cannot be the name of a remote",
            hint="take letters, digits and dashes, such as origin",
            remote=name[:60],
        )


class RemoteExists(Refused):
    """There is a remote of that name."""

    code = "remote-exists"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is a remote {name} already",
            hint=f"take another name, or remove it first: `uwf remote remove {name}`",
            remote=name,
        )


class NoSuchRemote(Refused):
    """No remote of this store is meant."""

    code = "no-such-remote"

    def __init__(self, name: str, known: list[str]) -> None:
        shown = name[:60] if name.isprintable() and name else repr(name[:60])
        there_are = f"there are {', '.join(known)}" if known else "there is none yet"
        super().__init__(
            f"there is no remote {shown}",
            hint=f"{there_are}; `uwf remote add NAME URL` adds one",
            remote=name[:60],
            known=known,
        )


class WhichRemote(Refused):
    """No remote was named, and it does not go without saying."""

    code = "which-remote"

    def __init__(self, known: list[str]) -> None:
        super().__init__(
            f"there are {len(known)} remotes, none of them {_DEFAULT}"
            if known
            else "there is no remote yet",
            hint=f"name one of {', '.join(known)}" if known else "`uwf remote add origin URL`",
            known=known,
        )


class SeveralPushUrls(Refused):
    """git would push to all of them; one answer could not tell what became of each."""

    code = "several-push-urls"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"remote {name} has several push URLs, and uwf pushes to one",
            hint="make a remote of each: `uwf remote add NAME URL`",
            remote=name,
        )


class Remote(NamedTuple):
    """Another repository."""

    name: str
    url: str
    """As it was configured."""

    push_urls: tuple[str, ...] = ()
    """Where pushes go instead, if they go elsewhere."""

    @property
    def tracking(self) -> str:
        """Give the folder of refs that hold what was last fetched from it."""
        return f"{TRACKING}{self.name}/"

    @property
    def shown(self) -> str:
        """Give its URL without anybody's password."""
        return shown_url(self.url)


def is_remote_name(name: str) -> bool:
    """Tell whether git takes *name* for a remote: refs/remotes/<name>/x must be a legal ref."""
    if _FORBIDDEN.search(name):
        return False
    parts = name.split("/")
    return all(part and not part.startswith(".") and not part.endswith(".lock") for part in parts)


def list_remotes(config: GitConfig) -> list[Remote]:
    """List the remotes that have a URL, by name."""
    names = [name[len("remote.") : -len(_URL)] for name in config.values if _is_url(name)]
    return [_read(config, name) for name in sorted(names)]


def _is_url(setting: str) -> bool:
    return (
        setting.startswith("remote.")
        and setting.endswith(_URL)
        and len(setting) > len("remote." + _URL)
    )


def _read(config: GitConfig, name: str) -> Remote:
    url = config.get_all(f"remote.{name}.url")[0]
    return Remote(name, url, tuple(config.get_all(f"remote.{name}.pushurl")))


def choose_remote(config: GitConfig, name: str | None) -> Remote:
    """Give the remote *name*; without one the only remote there is, or origin.

    Raises:
        NoSuchRemote, WhichRemote: none is meant.
    """
    remotes = {remote.name: remote for remote in list_remotes(config)}
    if name is not None:
        if name not in remotes:
            raise NoSuchRemote(name, list(remotes))
        return remotes[name]
    if len(remotes) == 1:
        return next(iter(remotes.values()))
    if _DEFAULT not in remotes:
        raise WhichRemote(list(remotes))
    return remotes[_DEFAULT]


def remote_url(store: Store, remote: Remote, *, for_push: bool = False) -> RemoteUrl:
    """Give where *remote* is, with git's rewritings of URLs applied.

    Raises:
        BadRemoteUrl: its URL leads nowhere.
        SeveralPushUrls: a push would go to more than one place.
    """
    if for_push and len(remote.push_urls) > 1:
        raise SeveralPushUrls(remote.name)
    if for_push and remote.push_urls:
        # As in git: a URL that is only for pushes is not rewritten as one more of them.
        text = rewrite_url(remote.push_urls[0], store.config, for_push=False)
    else:
        text = rewrite_url(remote.url, store.config, for_push=for_push)
    # git stands in the work tree, or in a bare repository, when it reads a relative path.
    place = os.path.dirname(store.path) if os.path.basename(store.path) == ".git" else store.path
    return parse_remote_url(text, relative_to=place)


def add_remote(store: Store, name: str, url: str, *, cwd: str) -> Remote:
    """Write the settings of a new remote, all or nothing; a local path is made absolute.

    Raises:
        BadRemoteName, BadRemoteUrl: git or we could do nothing with them.
        RemoteExists: the name is taken.
        RefLocked: git is writing the config and does not let go.
    """
    if not is_remote_name(name):
        raise BadRemoteName(name)
    parsed = parse_remote_url(url, relative_to=cwd)
    written = parsed.text if parsed.kind == "path" else url
    settings = [("url", written), *_refspecs(name)]

    def change(text: str) -> str:
        for key, value in settings:
            text = edit_config(text, f"remote.{name}.{key}", value, keep=True)
        return text

    path = _config_path(store)
    if any(setting.startswith(f"remote.{name}.") for setting in read_config_file(path).values):
        raise RemoteExists(name)
    rewrite_config(path, change)
    for key, value in settings:
        store.config.values.setdefault(f"remote.{name}.{key}", []).append(value)
    return Remote(name, written)


def _refspecs(name: str) -> list[tuple[str, str]]:
    fetched = [("fetch", f"+refs/{each}/*:{TRACKING}{name}/{each}/*") for each in SHARED]
    return [*fetched, *(("push", f"refs/{each}/*:refs/{each}/*") for each in SHARED)]


def forget_remote(store: Store, name: str) -> None:
    """Take the settings of the remote *name* out of the repository's config.

    Raises:
        NoSuchRemote: this repository has none of that name.
        RefLocked: git is writing the config and does not let go.
    """
    path = _config_path(store)
    known = list_remotes(read_config_file(path))
    if name not in {remote.name for remote in known}:
        raise NoSuchRemote(name, [remote.name for remote in known])
    rewrite_config(path, lambda text: remove_section(text, f"remote.{name}"))


def _config_path(store: Store) -> str:
    return os.path.join(store.path, "config")
