"""Identities: who commits, as git finds it; cleaned so that commits pass `git fsck --strict`.

dulwich writes anything, and one commit with a bad name makes its thread unpushable (FACTS 4).
Source: git-commit(1), "COMMIT INFORMATION"; git's ident.c.
"""

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.git.config import GitConfig

_NOT_IN_NAME = re.compile(r"[<>\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Marks that turn the direction of writing show one name for another (https://trojansource.codes).
_MARKS = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_NOT_IN_EMAIL = re.compile(rf"\s|{_MARKS.pattern}|{_NOT_IN_NAME.pattern}")
_NOT_IN_PROGRAM = re.compile(r"[^A-Za-z0-9._+-]")
_EDGES = " .,:;'\"\\<>"
_MAIL_NAME = "/etc/mailname"


class NoIdentity(Refused):
    """No name or address is set, and git may not guess one."""

    code = "no-identity"

    def __init__(self, setting: str) -> None:
        super().__init__(
            f"{setting} is not set, and user.useConfigOnly forbids to guess it",
            hint=f"set it: `git config --global {setting} VALUE`",
            setting=setting,
        )


class Committer(NamedTuple):
    identity: bytes

    is_guess: bool
    """The address is made of the account on this machine, as nothing else is set."""


def find_committer(config: GitConfig, environ: Mapping[str, str]) -> Committer:
    """Return the committer as git finds it: variables, settings, the account.

    Where git refuses its own guess, as the host has no domain, the guess is used. NoIdentity: a
    part is not set, and `user.useConfigOnly` forbids to guess it.
    """
    name = _find_part("name", config, environ)
    email = _find_part("email", config, environ) or environ.get("EMAIL")
    if name and email:
        return Committer(clean_identity(name, email), is_guess=False)
    login, full_name = _find_account(environ)
    identity = clean_identity(name or full_name, email or f"{login}@{find_host()}")
    return Committer(identity, is_guess=not email)


def _find_part(part: str, config: GitConfig, environ: Mapping[str, str]) -> str | None:
    found = (
        environ.get(f"GIT_COMMITTER_{part.upper()}")
        or config.get(f"committer.{part}")
        or config.get(f"user.{part}")
    )
    if not found and config.get_flag("user.useConfigOnly", default=False):
        raise NoIdentity(f"user.{part}")
    return _MARKS.sub(" ", found) if found else found


def _find_account(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the login name and the full name of the account on this machine."""
    try:
        import pwd  # noqa: PLC0415 (Unix only)

        entry = pwd.getpwuid(os.getuid())
    except (ImportError, KeyError):
        # A container may run under a number without an account.
        login = environ.get("USER") or environ.get("LOGNAME") or "unknown"
        return login, login
    login = entry.pw_name
    # In the full name, & is the login name with a capital letter.
    full = entry.pw_gecos.partition(",")[0].replace("&", login[:1].upper() + login[1:])
    return login, full.strip() or login


@cache
def find_host() -> str:
    """Return the mail name of this machine, else its host name with the domain, if it has one."""
    import socket  # noqa: PLC0415 (3 ms, for those without an address)

    try:
        with open(_MAIL_NAME, encoding="utf-8", errors="replace") as file:
            mail_name = file.readline().rstrip("\n")
    except OSError:
        mail_name = ""
    host = mail_name or socket.gethostname()
    if mail_name or "." in host:
        return host
    try:
        found = socket.getaddrinfo(host, None, flags=socket.AI_CANONNAME)
    except OSError:
        return host
    canonical = found[0][3]
    return canonical if "." in canonical else host


def clean_identity(name: str, email: str) -> bytes:
    """Return `name <email>` as git accepts it; an empty part becomes ``unknown``."""
    clean_name = " ".join(_NOT_IN_NAME.sub(" ", name).split()).strip(_EDGES)
    clean_email = _NOT_IN_EMAIL.sub("", email).strip(_EDGES)
    return f"{clean_name or 'unknown'} <{clean_email or 'unknown'}>".encode()


def is_clean(identity: bytes) -> bool:
    """Check whether ``find_committer`` could have made *identity*."""
    name, _, email = identity.decode(errors="replace").rpartition(" <")
    return clean_identity(_MARKS.sub(" ", name), email.removesuffix(">")) == identity


def agent_identity(role: str, program: str) -> bytes:
    """Return the author of a step, for readers of `git log`: the role, and its player's program."""
    address = _NOT_IN_PROGRAM.sub("", program)
    return clean_identity(role, f"{address or 'unknown'}@uwf")
