"""Remotes as git config has them: their URLs, what was last seen there, the repair of mirrors."""

import hashlib
import itertools
import os
import re
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from uwf_git.errors import BadUsage, Refused, StoreDamaged
from uwf_git.model.names import Oid, ThreadId, is_thread_id
from uwf_git.model.text import quote_path
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.store.git.config import (
    GitConfig,
    edit_config,
    moves_threads_back,
    read_config_file,
    remove_section,
    remove_values,
    rewrite_config,
)
from uwf_git.store.objects.commit import is_descendant
from uwf_git.store.objects.objects import has_object
from uwf_git.store.refs import BadRef, list_bad_files, list_packed_refs, list_refs
from uwf_git.store.store import Store, own_change
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE

# Remote URLs: tell paths, `host:path` and URLs apart as git does; rewrite them; hide passwords.
#
# Source: git-fetch(1), "GIT URLS"; git-config(1), `url.<base>.insteadOf`.

UrlKind = Literal["path", "git", "ssh", "http"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_OTHER_PROGRAM = re.compile(r"[A-Za-z0-9]+::")
_KINDS: dict[str, UrlKind] = {
    "file": "path",
    "git": "git",
    "git+ssh": "ssh",
    "http": "http",
    "https": "http",
    "ssh": "ssh",
    "ssh+git": "ssh",
}
_PLAIN = re.compile(r"[^\x00-\x20\x7f]+")
_ODD = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_HAS_ODD = "has a control character, or bytes that are not UTF-8"
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\[\]:\\@]+)(?::([0-9]{0,5}))?")

# What is meant as a URL and would be the path of a host called "https", or a folder.
_ALMOST_URL = re.compile(
    rf"(?:{'|'.join(map(re.escape, _KINDS))})(?::|//?[^/]*:[^/]*@)", re.IGNORECASE
)
_PASSWORD_IN_PLACE = re.compile(r"[^/:@]+:[^/@]*@[^/:]+[/:]")


def bad_remote_url(url: str, problem: str) -> BadUsage:
    shown = _hide_password(url)
    return BadUsage(
        f"{shown if shown.isprintable() and shown else repr(shown)} {problem}",
        code="bad-remote-url",
        hint="give a path, host:path, or a URL that begins with https://, ssh://, git:// or "
        "file://",
        url=shown,
    )


class RemoteUrl(NamedTuple):
    kind: UrlKind
    text: str

    @property
    def shown(self) -> str:
        return shown_url(self.text)


def parse_remote_url(text: str, *, relative_to: str) -> RemoteUrl:
    """Parse *text* as a URL, `host:path` or path; a relative path begins at *relative_to*."""
    if not text:
        raise bad_remote_url(text, "is empty")
    found = _SCHEME.match(text)
    if found is None:
        return _parse_place(text, relative_to)
    kind = _KINDS.get(found[1].lower())
    if kind is None:
        raise bad_remote_url(text, "is a URL of a kind that uwf does not support")
    rest = text[found.end() :]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if kind == "path":
        if authority not in {"", "localhost"}:
            raise bad_remote_url(text, "names a file on another machine")
        path = unquote(rest[len(authority) :], errors="surrogateescape")
        return RemoteUrl("path", _absolute(path, relative_to))
    host = authority.rpartition("@")[2]
    # ssh would take a host that begins with a dash for an option.
    if host[:1] in {"", ":"} or host.startswith("-") or not _PLAIN.fullmatch(text):
        raise bad_remote_url(text, "names no host")
    # A server of http may take any bytes.
    if _ODD.search(unquote(text, errors="replace" if kind == "http" else "surrogateescape")):
        raise bad_remote_url(text, _HAS_ODD)
    if not _is_authority(authority):
        raise bad_remote_url(text, "has a malformed host or port (in a password, write / as %2F)")
    scheme = "ssh" if kind == "ssh" else found[1].lower()
    return RemoteUrl(kind, f"{scheme}://{rest}")


def with_whole_path(url: str, *, relative_to: str) -> str:
    """Return *url* as it is written down: a path on this machine is absolute."""
    parsed = parse_remote_url(url, relative_to=relative_to)
    return parsed.text if parsed.kind == "path" else url


def _is_authority(authority: str) -> bool:
    """Check the host and port: other code would read a malformed authority as another place."""
    found = _HOST.fullmatch(authority.rpartition("@")[2])
    if found is None or "\\" in authority or int(found[1] or 1) not in range(1, 65_536):
        return False
    try:
        urlsplit(f"//{authority}")
    except ValueError:
        return False
    return True


def _parse_place(text: str, relative_to: str) -> RemoteUrl:
    if _OTHER_PROGRAM.match(text):
        raise bad_remote_url(text, "needs a git remote helper, which uwf does not support")
    if _ALMOST_URL.match(text):
        raise bad_remote_url(text, "is no URL: :// is missing")
    if _PASSWORD_IN_PLACE.match(text):
        raise bad_remote_url(text, "has a password, which only a URL can have")
    host, colon, path = text.partition(":")
    if not colon or "/" in host:
        return RemoteUrl("path", _absolute(text, relative_to))
    if _ODD.search(text):
        raise bad_remote_url(text, _HAS_ODD)
    if not host.rpartition("@")[2] or host.startswith("-") or not path or path.startswith("-"):
        raise bad_remote_url(text, "names no host and path")
    return RemoteUrl("ssh", text)


def _absolute(path: str, relative_to: str) -> str:
    if "\0" in path:
        raise bad_remote_url(path, "is not a path")
    whole = os.path.abspath(os.path.join(relative_to, os.path.expanduser(path)))
    # The `.git` of a linked work tree is a file, too.
    if os.path.isfile(whole) and os.path.basename(whole) != ".git":
        raise BadUsage(
            f"{whole} is a file, not a repository",
            code="remote-is-file",
            hint="of a bundle make a store: `uwf init NEW.git`, then `git -C NEW.git fetch "
            f"{quote_path(whole)} 'refs/*:refs/*'`",
            path=whole,
        )
    return whole


def rewrite_url(text: str, config: GitConfig, *, for_push: bool) -> str:
    """Return *text* rewritten by `url.<base>.insteadOf`, or for a push `pushInsteadOf`."""
    names = ("pushinsteadof", "insteadof") if for_push else ("insteadof",)
    for name in names:
        found = _rewrites(config, name, text)
        begin, base = max(found, key=lambda each: len(each[0]), default=("", ""))
        if begin:
            return base + text[len(begin) :]
    return text


def _rewrites(config: GitConfig, name: str, text: str) -> Iterator[tuple[str, str]]:
    for setting, values in config.values.items():
        if setting.startswith("url.") and setting.endswith(f".{name}"):
            base = setting[len("url.") : -len(name) - 1]
            yield from ((value, base) for value in values if value and text.startswith(value))


def digest_url(text: str) -> str:
    """Return a name for what is kept of the URL *text*: the same in every locale."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def shown_url(text: str) -> str:
    """Return *text* without passwords; for http also without the name, which may be a token."""
    found = _SCHEME.match(text)
    if found is None:
        return text
    authority = _authority_of(text[found.end() :])
    user, at, host = authority.rpartition("@")
    rest = text[found.end() + len(authority) :]
    if _KINDS.get(found[1].lower()) == "ssh" and at:
        host = f"{user.partition(':')[0]}@{host}"
    return f"{found[0]}{host}{rest}"


def _authority_of(rest: str) -> str:
    """Return where the host and a password are in what follows the scheme of a URL."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    # A password that holds a slash looks like a malformed port.
    return authority if _is_authority(authority) else rest[: rest.rfind("@") + 1] or authority


def _hide_password(text: str) -> str:
    """Return *text*, which is malformed, without what may be a password."""
    found = _SCHEME.match(text)
    begin = found[0] if found else ""
    user, _at, place = text.removeprefix(begin).rpartition("@")
    return f"{begin}{user.partition(':')[0]}:…@{place}" if ":" in user else text


def without_passwords(words: str, text: str) -> str:
    """Return *words*, an error text that may quote the URL *text*, without its passwords."""
    found = _SCHEME.match(text)
    authority = re.split(r"[/?#]", text[found.end() :], maxsplit=1)[0] if found else ""
    user, at, _host = authority.rpartition("@")
    password = user.partition(":")[2]
    if at:
        words = words.replace(text, shown_url(text)).replace(f"{user}@", "")
    for secret in {password, unquote(password)} - {""}:
        words = words.replace(secret, "…")
    return words


def folder_of(text: str) -> str:
    """Return the folder name for a clone of *text* as git chooses it: `name.git`."""
    path = shown_url(text).rstrip("/").removesuffix("/.git").rstrip("/")
    name = re.split(r"[/:]", path)[-1].removesuffix(".git")
    return f"{name}.git" if name and name not in {".", ".."} else ""


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
_URL = re.compile(r"remote\.(.+)\.url", re.DOTALL)
# What git-check-ref-format forbids, and surrogates: bytes that are not UTF-8.
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]|\.\.|@\{")


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
    found = []
    for name in sorted(match[1] for setting in config.values if (match := _URL.fullmatch(setting))):
        urls = config.get_all(f"remote.{name}.url")
        # git pushes to all of several URLs.
        push_urls = config.get_all(f"remote.{name}.pushurl") or (urls if len(urls) > 1 else [])
        found.append(Remote(name, urls[0], tuple(push_urls)))
    return found


def choose_remote(config: GitConfig, name: str | None) -> Remote:
    """Return the remote *name*; without a name the only remote, else origin.

    A project's own remotes count only if `uwf remote add` has added no remote.
    """
    remotes = {remote.name: remote for remote in list_remotes(config)}
    if name in remotes:
        return remotes[name]
    if name is not None:
        shown = name[:60] if name.isprintable() and name else repr(name[:60])
        named = f"there are {', '.join(remotes)}; a thread's name comes after one of them"
        there_are = named if remotes else "there is none yet"
        raise Refused(
            f"there is no remote {shown}",
            code="no-such-remote",
            hint=f"{there_are}; `uwf remote add NAME URL` adds one",
            remote=name[:60],
            known=list(remotes),
        )
    added = {each: remote for each, remote in remotes.items() if _is_added(config, each)}
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


def _is_added(config: GitConfig, name: str) -> bool:
    # `git remote rename` leaves the old name in these.
    return any(f":{TRACKING}" in refspec for refspec in config.get_all(f"remote.{name}.fetch"))


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
    written = with_whole_path(url, relative_to=cwd)
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
    with own_change(store):
        rewrite_config(_config_path(store), lambda text: remove_section(text, f"remote.{name}"))


def _config_path(store: Store) -> str:
    return os.path.join(store.path, "config")


# Make a mirror a remote for uwf; what a mirror is stands in git/config.py.


def repair_remote(store: Store, name: str) -> None:
    """Give the remote *name*, a mirror, the settings that `uwf remote add` writes."""
    path = _config_path(store)
    own = read_config_file(path)
    section = f"remote.{name}"
    wanted = [
        *refspecs_of(name),
        *(
            ("fetch", f"+refs/{each}/*:refs/{each}/*")
            for each in ("heads", "tags")
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
    """Each ref is looked up when it is asked for: many remotes have many refs of other threads."""

    def __init__(self, store: Store) -> None:
        self._refs, self._objects = store.refs, store.objects
        self._remotes = list_remotes(store.config)

    def find_thread(self, thread: str, here: Oid) -> Iterator[Divergence]:
        return self._find(("archive", "threads"), thread, here)

    def find_workflow(self, name: str, here: Oid) -> Iterator[Divergence]:
        return self._find(("workflows",), name, here)

    def _find(self, kinds: tuple[str, ...], name: str, here: Oid) -> Iterator[Divergence]:
        for remote in self._remotes:
            seen = (self._look_up(f"{remote.tracking}{kind}/{name}") for kind in kinds)
            there = next((oid for oid in seen if oid is not None), None)
            if there is not None and self._differ(here, there):
                yield Divergence(remote.name, there)

    def _look_up(self, ref: str) -> Oid | None:
        # A damaged ref is the next fetch's to report.
        with suppress(BadRef):
            return self._refs.find(ref)
        return None

    def _differ(self, here: Oid, there: Oid) -> bool:
        if is_descendant(self._objects, here, there) or is_descendant(self._objects, there, here):
            return False
        # A lost commit of the remote is for `git fsck`.
        return all(has_object(self._objects, oid) for oid in (here, there))


# Shared refs, and tracking refs: what was last seen at each remote.
#
# Shared are the refs of threads, archive and workflows; their tracking refs lie in the same
# folders below refs/uwf/remotes/<remote>/. A tracking ref moves only from the value that was read
# before the remote was contacted, so of two concurrent fetches the later answer stays.

_REFS = "refs/"


class SharedRefs(NamedTuple):
    threads: dict[str, Oid]
    archive: dict[str, Oid]
    workflows: dict[str, Oid]

    def find(self, kind: str, name: str) -> Oid | None:
        refs: dict[str, Oid] = getattr(self, kind)
        return refs.get(name)

    def rows(self) -> Iterator[tuple[str, str, Oid]]:
        for kind, refs in self._asdict().items():
            yield from ((kind, name, oid) for name, oid in refs.items())

    def find_tip(self, thread: str) -> Oid | None:
        """Return the newest commit of a thread, active or archived; None for an unknown thread."""
        return self.archive.get(thread) or self.threads.get(thread)

    def only(self, threads: Container[str], workflows: Container[str] = ()) -> "SharedRefs":
        """Return the refs of these *threads* alone, active or archived, and of *workflows*."""
        pairs = zip(self, (threads, threads, workflows), strict=True)
        return SharedRefs(*({k: v for k, v in refs.items() if k in some} for refs, some in pairs))


def read_shared(store: Store, remote: Remote | None = None) -> SharedRefs:
    prefix = _REFS if remote is None else remote.tracking
    found: dict[str, Oid] = {}
    for kind in SHARED:
        listed = list_refs(store.path, f"{prefix}{kind}/")
        found.update({f"{_REFS}{kind}/{name}": oid for name, oid in listed.items()})
    return sort_refs(found)[0]


def list_unreadable(store: Store) -> list[str]:
    """List the shared refs whose loose file holds no object id; `read_shared` leaves them out."""
    return [
        ref
        for kind in SHARED
        for ref in list_bad_files(store.path, f"{_REFS}{kind}/")
        if not sort_refs({ref: Oid("")})[1]
    ]


def sort_refs(refs: Mapping[str, Oid]) -> tuple[SharedRefs, list[str]]:
    """Sort refs by kind; also return those that name neither a thread nor a workflow."""
    shared, ignored = SharedRefs({}, {}, {}), []
    for ref, oid in refs.items():
        if ref.startswith(CLAIMS):
            continue
        _refs, kind, name = ref.split("/", 2)
        is_ours = check_workflow_name(name) is None if kind == "workflows" else is_thread_id(name)
        if is_ours:
            getattr(shared, kind)[name] = oid
        else:
            ignored.append(ref)
    return shared, ignored


def update_tracking(store: Store, remote: Remote, *, seen: SharedRefs, now: SharedRefs) -> None:
    places = dict.fromkeys((kind, name) for side in (now, seen) for kind, name, _oid in side.rows())
    moves = {
        f"{kind}/{name}": (seen.find(kind, name), now.find(kind, name)) for kind, name in places
    }
    # A thread that was archived is never in none of both places.
    archived = (seen.threads.keys() - now.threads.keys()) & now.archive.keys()
    track(store, remote, moves, at_once=bool(archived))


def track(
    store: Store,
    remote: Remote,
    moves: Mapping[str, tuple[Oid | None, Oid | None]],
    *,
    at_once: bool = False,
) -> None:
    """Move the tracking ref of each place (such as `threads/<id>`) from one value to another."""
    changes = {remote.tracking + place: move for place, move in moves.items() if move[0] != move[1]}
    store.refs.change(changes, at_once=at_once)


def forget_tracking(store: Store, remote: Remote) -> None:
    moves: dict[str, tuple[Oid | None, Oid | None]] = {}
    for kind in SHARED:
        listed = list_refs(store.path, f"{remote.tracking}{kind}/")
        moves.update({f"{kind}/{name}": (oid, None) for name, oid in listed.items()})
    track(store, remote, moves)


def forget_tracked(store: Store, thread: ThreadId) -> list[str]:
    """Remove the tracking refs of *thread*; return the remotes that had some.

    git may have removed or renamed a remote, and left its refs.
    """
    walked = os.walk(os.path.join(store.path, TRACKING))
    folders = (folder for folder, _, files in walked if thread in files)
    loose = (os.path.relpath(os.path.join(each, thread), store.path) for each in folders)
    packed = (name for name, _oid in list_packed_refs(store.path, TRACKING))
    names = sorted({*loose, *(each for each in packed if each.endswith(f"/{thread}"))})
    store.refs.change({name: (store.refs.find(name), None) for name in names})
    return list(dict.fromkeys(name.removeprefix(TRACKING).rsplit("/", 2)[0] for name in names))


# Thread sides: the refs of a thread here, and its tracking refs of a remote.


class Sides(NamedTuple):
    """The refs of a thread on both sides; None for a missing ref."""

    active: Oid | None
    archived: Oid | None
    there_active: Oid | None
    there_archived: Oid | None

    @property
    def there(self) -> Oid | None:
        return self.there_archived or self.there_active

    @property
    def is_in_sync(self) -> bool:
        """Check without reading a commit that there is nothing to reconcile."""
        if self.archived is not None:
            return self.active is None and self.there in {None, self.archived}
        if self.there_archived is not None:
            return False
        return self.there_active in {None, self.active}


def read_sides(store: Store, remote: Remote, thread: ThreadId) -> Sides:
    # Active before archive: a thread archived in between is then seen in both, not in neither.
    return Sides(
        store.refs.find(ACTIVE + thread),
        store.refs.find(ARCHIVE + thread),
        store.refs.find(f"{remote.tracking}threads/{thread}"),
        store.refs.find(f"{remote.tracking}archive/{thread}"),
    )


def list_sides(store: Store, thread: ThreadId) -> Iterator[tuple[Remote, Sides]]:
    """List where *thread* stands at each remote; a damaged ref is the next fetch's to report."""
    for remote in list_remotes(store.config):
        with suppress(StoreDamaged):
            yield remote, read_sides(store, remote, thread)


def find_peer(store: Store, thread: ThreadId, here: Oid, there: Oid) -> str | None:
    """Return a remote that agrees with *thread* at *here*, and would not with it at *there*."""
    goes_on = partial(is_descendant, store.objects)
    for remote, sides in list_sides(store, thread):
        at = sides.there
        if at and (goes_on(at, here) or (goes_on(here, at) and not goes_on(there, at))):
            return remote.name
    return None
