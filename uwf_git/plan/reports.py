"""Judge a report on a plan: is it complete, and are the files that it names really changed.

A claim is false only if neither the disk nor git bears it out. Copies and moves keep the time of
the content but not that of the inode (ctime), so `cp -p`, `mv` and `tar x` are seen.
"""

import functools
import os
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from uwf_git.model.text import one_line
from uwf_git.plan.changed_files import list_changed
from uwf_git.plan.inside import find_spelled, resolve_inside

SLACK_S = 2
"""By how much the clocks of file system, git and engine may differ."""

CLAIMS = ("files_created", "files_modified")

_MOST_ENTRIES = 100_000

_Changed = Callable[[str], frozenset[str]]


def find_incompleteness(meta: Any) -> str | None:
    """Return why the report *meta* is not that of a finished job, on one line; None if it is."""
    report = meta if isinstance(meta, dict) else {}
    if report.get("completed") is True:
        return None
    issues = [text for text in _texts(report.get("issues")) if text.strip()]
    return one_line(f"not completed: {'; '.join(issues) or 'the report names no issues'}")


def list_claims(meta: Any) -> list[tuple[str, str]]:
    """List the files that the report *meta* names, each after the field that names it."""
    report = meta if isinstance(meta, dict) else {}
    return [(field, path) for field in CLAIMS for path in _texts(report.get(field))]


def list_false_claims(
    claims: Sequence[tuple[str, str]], *, workdir: str, since_ms: int, environ: Mapping[str, str]
) -> list[str]:
    """List, a line each, the claims that neither the disk nor git bears out; [] if all are true.

    *since_ms* is when the first try of this plan began; *environ* is for git.
    """
    since_s = since_ms // 1000 - SLACK_S

    @functools.cache
    def changed(folder: str) -> frozenset[str]:
        return list_changed(folder, since_s, environ)

    return [
        one_line(f"{field} names {path!r}, {problem}")
        for field, path in claims
        if (problem := _find_problem(workdir, path, since_s, changed)) is not None
    ]


def _find_problem(workdir: str, path: str, since_s: int, changed: _Changed) -> str | None:
    inside = resolve_inside(workdir, path)
    if inside is None:
        return "which is not below the work directory"
    found = find_spelled(workdir, inside)
    if found is not None and _is_changed_since(os.path.join(workdir, found), since_s):
        return None
    if _is_named(workdir, found or inside, changed):
        return None
    if found is None:
        return "which does not exist, and git knows of no deletion"
    return "which has not changed since this plan began"


def _is_changed_since(path: str, since_s: int) -> bool:
    """Check the times of *path*, of what a link leads to, and of all below a folder."""
    return any(_is_recent(each, since_s) for each in (path, *_walk(path)))


def _walk(path: str) -> Iterator[str]:
    seen = 0
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            seen += 1
            if seen > _MOST_ENTRIES:
                return
            yield os.path.join(folder, name)


def _is_recent(path: str, since_s: int) -> bool:
    for look in (os.lstat, os.stat):
        try:
            times = look(path)
        except OSError:
            continue
        if max(times.st_mtime, times.st_ctime) >= since_s:
            return True
    return False


def _is_named(workdir: str, path: str, changed: _Changed) -> bool:
    """Check whether git names *path*, or anything below it.

    Asked in the nearest folder that exists, which may be in a repository of its own.
    """
    folder = os.path.dirname(path)
    while folder and not os.path.isdir(os.path.join(workdir, folder)):
        folder = os.path.dirname(folder)
    rest = os.path.relpath(path, folder or os.curdir).replace(os.sep, "/")
    wanted = unicodedata.normalize("NFC", rest)
    names = changed(os.path.join(workdir, folder))
    if wanted == ".":
        return bool(names)
    return any(name == wanted or name.startswith(f"{wanted}/") for name in names)


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
