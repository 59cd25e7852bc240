"""git credentials: names and passwords from git's credential helpers.

Source: git-credential(1), "TYPICAL USE OF GIT CREDENTIAL".
"""

import os
from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from uwf_git.git_environment import without_local_variables
from uwf_git.store.git.program import Ran, run_program
from uwf_git.store.remotes.url import RemoteUrl


class Credential(NamedTuple):
    """A user name and password for one server."""

    username: str
    password: str
    description: str
    """The output of `git credential fill`, to pass to `approve` or `reject`."""


def find_credential(
    url: RemoteUrl, git: str | None, environ: Mapping[str, str]
) -> Credential | None:
    """Return the credential for *url* from git's helpers; None without one, or without git.

    If no helper has one, git prompts on the terminal, unless GIT_TERMINAL_PROMPT is 0.

    Raises:
        ProgramFailed: git could not be started.
    """
    if git is None:
        return None
    ran = _run(git, "fill", environ, _describe(url))
    if ran.status != 0:
        return None
    description = ran.stdout.decode(errors="replace")
    fields = dict(line.split("=", 1) for line in description.split("\n") if "=" in line)
    if not fields.get("username") or "password" not in fields:
        return None
    return Credential(fields["username"], fields["password"], description)


def report_credential(
    verdict: Literal["approve", "reject"],
    credential: Credential,
    git: str | None,
    environ: Mapping[str, str],
) -> None:
    """Report to git's helpers whether the server accepted *credential*."""
    if git is not None:
        _run(git, verdict, environ, credential.description)


def _run(git: str, verb: str, environ: Mapping[str, str], description: str) -> Ran:
    child = without_local_variables(environ, keep_settings=True)
    # Not where we are: a repository there would name a helper, and it is none of the store's.
    argv = [os.path.abspath(git), "credential", verb]
    return run_program(argv, child, given=description.encode(), cwd="/")


def _describe(url: RemoteUrl) -> str:
    parts = urlsplit(url.text)
    host = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
    lines = [f"protocol={parts.scheme}", f"host={host}", f"path={parts.path.lstrip('/')}"]
    if parts.username:
        lines.append(f"username={unquote(parts.username)}")
    return "\n".join(lines) + "\n\n"
