"""Remote URLs: tell paths, `host:path` and URLs apart as git does; rewrite them; hide passwords.

Source: git-fetch(1), "GIT URLS"; git-config(1), `url.<base>.insteadOf`.
"""

import os
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from uwf_git.errors import BadUsage
from uwf_git.store.git.config import GitConfig

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
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\[\]:\\@]+)(?::([0-9]{0,5}))?")
_HIGHEST_PORT = 65_535
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
        return RemoteUrl("path", _absolute(unquote(rest[len(authority) :]), relative_to))
    host = authority.rpartition("@")[2]
    # ssh would take a host that begins with a dash for an option.
    if host[:1] in {"", ":"} or host.startswith("-") or not _PLAIN.fullmatch(text):
        raise bad_remote_url(text, "names no host")
    if not _is_authority(authority):
        raise bad_remote_url(text, "has a malformed host or port (in a password, write / as %2F)")
    scheme = "ssh" if kind == "ssh" else found[1].lower()
    return RemoteUrl(kind, f"{scheme}://{rest}")


def _is_authority(authority: str) -> bool:
    """Check the host and port: other code would read a malformed authority as another place."""
    found = _HOST.fullmatch(authority.rpartition("@")[2])
    if found is None or "\\" in authority or int(found[1] or 1) not in range(1, _HIGHEST_PORT + 1):
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
    if not host.rpartition("@")[2] or host.startswith("-") or not path or path.startswith("-"):
        raise bad_remote_url(text, "names no host and path")
    return RemoteUrl("ssh", text)


def _absolute(path: str, relative_to: str) -> str:
    if "\0" in path:
        raise bad_remote_url(path, "is not a path")
    return os.path.abspath(os.path.join(relative_to, os.path.expanduser(path)))


def rewrite_url(text: str, config: GitConfig, *, for_push: bool) -> str:
    """Return *text* rewritten by `url.<base>.insteadOf`, or for a push `pushInsteadOf`."""
    names = ("pushinsteadof", "insteadof") if for_push else ("insteadof",)
    for name in names:
        longest = max(
            ((begin, base) for begin, base in _rewrites(config, name) if text.startswith(begin)),
            key=lambda found: len(found[0]),
            default=None,
        )
        if longest is not None:
            begin, base = longest
            return base + text[len(begin) :]
    return text


def _rewrites(config: GitConfig, name: str) -> Iterator[tuple[str, str]]:
    for setting, values in config.values.items():
        if setting.startswith("url.") and setting.endswith(f".{name}"):
            base = setting[len("url.") : -len(name) - 1]
            yield from ((value, base) for value in values if value)


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
    path = text.rstrip("/").removesuffix("/.git").rstrip("/")
    name = re.split(r"[/:]", path)[-1].removesuffix(".git")
    return f"{name}.git" if name and name not in {".", ".."} else ""
