"""The files that decide which commands run: the store, the user's trust and the user's git config.

An agent that may edit files in its work directory must not edit these, should they lie there.
"""

import os
import re
from collections.abc import Iterable, Mapping

# Patterns and lists of programs give a meaning to these; `?` stands for any character.
_SPECIAL = re.compile(r"[^\w./-]")


def list_deciding_files(environ: Mapping[str, str]) -> list[str]:
    from uwf_git.store.user_files import find_user_file  # noqa: PLC0415 (part of the store)

    git_dir, home = environ.get("UWF_REPO"), environ.get("HOME")
    found: list[str] = []
    if git_dir:
        trust = find_user_file(git_dir, environ, "trust")
        found.append(git_dir)
        if trust is not None:
            # The folder of the trust in all stores.
            found.append(os.path.dirname(os.path.dirname(trust)))
    if home:
        xdg = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        found += [os.path.join(home, ".gitconfig"), os.path.join(xdg, "git")]
    return [*found, *filter(None, [environ.get("GIT_CONFIG_GLOBAL")])]


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Check whether *path* is or lies in any of *folders*, wherever symbolic links lead."""
    real = os.path.realpath(path)
    return any(f"{real}/".startswith(f"{os.path.realpath(each)}/") for each in folders)


def find_store_pattern(environ: Mapping[str, str]) -> str | None:
    """Return the absolute path of the store as a pattern without other wildcards than ``?``.

    None outside a turn, and for a project's own `.git`: programs keep their file tools out of it,
    and a rule could stop the git commands that an agent is meant to run.
    """
    git_dir = environ.get("UWF_REPO")
    if not git_dir or os.path.basename(git_dir) == ".git":
        return None
    return _SPECIAL.sub("?", os.path.realpath(git_dir))
