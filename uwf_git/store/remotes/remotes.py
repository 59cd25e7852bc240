"""Remotes as git config has them: ``remote.<name>.*``; and the repair of mirrors."""

import itertools
import os
import re
from collections.abc import Container, Iterator
from typing import NamedTuple

from uwf_git.errors import BadUsage, Refused
from uwf_git.store.git.config import (
    GitConfig,
    edit_config,
    read_config_file,
    remove_section,
    remove_values,
    rewrite_config,
)
from uwf_git.store.objects.commit import is_descendant
from uwf_git.store.objects.objects import has_object
from uwf_git.store.oid import Oid
from uwf_git.store.refs.refs import list_refs
from uwf_git.store.remotes.mirror import moves_threads_back
from uwf_git.store.remotes.url import RemoteUrl, parse_remote_url, rewrite_url, shown_url
from uwf_git.store.store import Store, own_change
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.workflows import WORKFLOWS

# Remotes as git config has them: ``remote.<name>.*``.
#
# git reads what is written here, so plain `git fetch` and `git push` work as well. Fetching
# writes below refs/uwf/remotes/<name>/, never below refs/threads/, where pruning would delete
# threads that were never pushed. Source: git-config(1), `remote.<name>.*`;
# git-check-ref-format(1).

TRACKING = "refs/uwf/remotes/"
SHARED = ("threads", "archive", "workflows")
"""The folders below refs/ that are fetched and pushed."""

CLAIMS = "refs/claims/"
"""The refs that say who runs which thread, at a hub; not fetched or pushed with the threads."""

_DEFAULT = "origin"
_OTHER_NAMES = ("threads", "hub", "uwf")
_URL = ".url"
# What git-check-ref-format forbids, and surrogates: bytes that are not UTF-8.
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]|\.\.|@\{")


def _no_such_remote(name: str, known: list[str]) -> Refused:
    shown = name[:60] if name.isprintable() and name else repr(name[:60])
    there_are = f"there are {', '.join(known)}" if known else "there is none yet"
    return Refused(
        f"there is no remote {shown}",
        code="no-such-remote",
        hint=f"{there_are}; `uwf remote add NAME URL` adds one",
        remote=name[:60],
        known=known,
    )


class Remote(NamedTuple):
    name: str
    url: str

    push_urls: tuple[str, ...] = ()

    @property
    def tracking(self) -> str:
        return f"{TRACKING}{self.name}/"

    @property
    def shown(self) -> str:
        return shown_url(self.url)


def is_remote_name(name: str) -> bool:
    """Check whether git accepts *name*: refs/remotes/<name>/x must be a legal ref."""
    if _FORBIDDEN.search(name):
        return False
    parts = name.split("/")
    return all(part and not part.startswith(".") and not part.endswith(".lock") for part in parts)


def list_remotes(config: GitConfig) -> list[Remote]:
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
    """Return the remote *name*; without a name the only remote, else origin.

    A project's own remotes count only if `uwf remote add` has added no remote.
    """
    remotes = {remote.name: remote for remote in list_remotes(config)}
    if name is not None:
        if name not in remotes:
            raise _no_such_remote(name, list(remotes))
        return remotes[name]
    added = {each: remote for each, remote in remotes.items() if _is_added(config, remote)}
    candidates = added or remotes
    if len(candidates) == 1:
        return next(iter(candidates.values()))
    if _DEFAULT in candidates:
        return candidates[_DEFAULT]
    known = list(candidates)
    raise Refused(
        f"there are {len(known)} remotes, none of them {_DEFAULT}"
        if known
        else "there is no remote yet",
        code="which-remote",
        hint=f"name one of {', '.join(known)}" if known else "`uwf remote add origin URL`",
        known=known,
    )


def _is_added(config: GitConfig, remote: Remote) -> bool:
    fetched = config.get_all(f"remote.{remote.name}.fetch")
    return any(f":{remote.tracking}" in refspec for refspec in fetched)


def remote_url(store: Store, remote: Remote, *, for_push: bool = False) -> RemoteUrl:
    """Return the URL of *remote*, rewritten by git's `url.<base>.insteadOf`."""
    if for_push and len(remote.push_urls) > 1:
        raise Refused(
            f"remote {remote.name} has several push URLs, and uwf pushes to one",
            code="several-push-urls",
            hint="make a remote of each: `uwf remote add NAME URL`",
            remote=remote.name,
        )
    if for_push and remote.push_urls:
        # As in git: pushInsteadOf does not apply to a push URL.
        text = rewrite_url(remote.push_urls[0], store.config, for_push=False)
    else:
        text = rewrite_url(remote.url, store.config, for_push=for_push)
    # git resolves a relative path in the work tree, or in a bare repository.
    place = os.path.dirname(store.path) if os.path.basename(store.path) == ".git" else store.path
    return parse_remote_url(text, relative_to=place)


def add_remote(store: Store, name: str, url: str, *, cwd: str) -> Remote:
    """Write the settings of a new remote, all or nothing; make a local path absolute."""
    if not is_remote_name(name):
        shown = name[:60] if name.isprintable() and name else repr(name[:60])
        raise BadUsage(
            f"{shown} cannot be the name of a remote",
            code="bad-remote-name",
            hint="use letters, digits and dashes, such as origin",
            remote=name[:60],
        )
    parsed = parse_remote_url(url, relative_to=cwd)
    written = parsed.text if parsed.kind == "path" else url
    settings = [("url", written), *refspecs_of(name)]

    def change(text: str) -> str:
        for key, value in settings:
            text = edit_config(text, f"remote.{name}.{key}", value, keep=True)
        return text

    path = _config_path(store)
    taken = {setting.rpartition(".")[0] for setting in read_config_file(path).values}
    if f"remote.{name}" in taken:
        free = _find_free_name(taken)
        raise Refused(
            f"there is a remote {name} already",
            code="remote-exists",
            hint=f"give this one another name: `uwf remote add {free} URL`",
            remote=name,
            free=free,
        )
    with own_change(store):
        rewrite_config(path, change)
    for key, value in settings:
        store.config.values.setdefault(f"remote.{name}.{key}", []).append(value)
    return Remote(name, written)


def _find_free_name(taken: Container[str]) -> str:
    numbered = (f"{_OTHER_NAMES[0]}{number}" for number in itertools.count(2))
    names = itertools.chain(_OTHER_NAMES, numbered)
    return next(name for name in names if f"remote.{name}" not in taken)


def refspecs_of(name: str) -> list[tuple[str, str]]:
    fetched = [("fetch", f"+refs/{each}/*:{TRACKING}{name}/{each}/*") for each in SHARED]
    return [*fetched, *(("push", f"refs/{each}/*:refs/{each}/*") for each in SHARED)]


def remove_remote_settings(store: Store, name: str) -> None:
    path = _config_path(store)
    known = list_remotes(read_config_file(path))
    if name not in {remote.name for remote in known}:
        raise _no_such_remote(name, [remote.name for remote in known])
    with own_change(store):
        rewrite_config(path, lambda text: remove_section(text, f"remote.{name}"))


def _config_path(store: Store) -> str:
    return os.path.join(store.path, "config")


# Make a mirror a remote for uwf (what a mirror is: above).

_OTHERS = ("heads", "tags")


def repair_remote(store: Store, name: str) -> None:
    """Give the remote *name*, a mirror, the settings that `uwf remote add` writes."""
    path = os.path.join(store.path, "config")
    own = read_config_file(path)
    section = f"remote.{name}"
    wanted = [
        *refspecs_of(name),
        *(
            ("fetch", f"+refs/{each}/*:refs/{each}/*")
            for each in _OTHERS
            if list_refs(store.path, f"refs/{each}/")
        ),
    ]

    def change(text: str) -> str:
        text = remove_values(text, f"{section}.mirror", own.get_all(f"{section}.mirror"))
        for key in ("fetch", "push"):
            old = own.get_all(f"{section}.{key}")
            text = remove_values(text, f"{section}.{key}", [*filter(moves_threads_back, old)])
        for key, value in wanted:
            if value not in own.get_all(f"{section}.{key}"):
                text = edit_config(text, f"{section}.{key}", value, keep=True)
        return text

    with own_change(store):
        rewrite_config(path, change)


# Divergence: refs that neither go on from what a remote last had, nor lead to it.


class Divergence(NamedTuple):
    """A remote whose history of a thread or workflow differs from the one here."""

    remote: str
    there: Oid


class RemoteHeads:
    def __init__(self, store: Store) -> None:
        self._objects = store.objects
        self._heads = {
            remote.name: {
                prefix: list_refs(store.path, remote.tracking + prefix.removeprefix("refs/"))
                for prefix in (ARCHIVE, ACTIVE, WORKFLOWS)
            }
            for remote in list_remotes(store.config)
        }

    def find_thread(self, thread: str, here: Oid) -> Iterator[Divergence]:
        return self._find((ARCHIVE, ACTIVE), thread, here)

    def find_workflow(self, name: str, here: Oid) -> Iterator[Divergence]:
        return self._find((WORKFLOWS,), name, here)

    def _find(self, prefixes: tuple[str, ...], name: str, here: Oid) -> Iterator[Divergence]:
        for remote, heads in self._heads.items():
            seen = (heads[prefix].get(name) for prefix in prefixes)
            there = next((oid for oid in seen if oid is not None), None)
            if there is not None and self._differ(here, there):
                yield Divergence(remote, there)

    def _differ(self, here: Oid, there: Oid) -> bool:
        if is_descendant(self._objects, here, there) or is_descendant(self._objects, there, here):
            return False
        # A lost commit of the remote is for `git fsck`.
        return all(has_object(self._objects, oid) for oid in (here, there))
