"""`uwf workflow rollback` and `remove`: add a version that restores or removes a workflow.

A rollback restores an earlier version byte for byte, after reading all of it. It trusts no agents:
the version may have been fetched.
"""

import difflib
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.workflow.find import WorkflowRemoved
from uwf_git.errors import Refused
from uwf_git.model.names import NodeHash, NotANodeHash, parse_node_prefix
from uwf_git.model.references import walk_closure
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.workflows.registry import (
    Version,
    find_version,
    get_version_node,
    list_names,
    no_such_workflow,
    read_sources,
    remove_version,
    restore_version,
    walk_versions,
)

# git's own shortest abbreviation.
_SHORTEST_COMMIT = 4
_MOST_LISTED = 10


def _no_such_version(name: str, what: str) -> Refused:
    return Refused(
        f"workflow {name} has {what}",
        code="no-such-version",
        hint=f"`uwf workflow history {name}` lists its versions",
        workflow=name,
    )


def _ambiguous_version(text: str, matches: list[str]) -> Refused:
    return Refused(
        f"{len(matches)} versions begin with {text}: {', '.join(matches[:_MOST_LISTED])}",
        code="ambiguous-version",
        hint="give more of the hash",
        matches=matches,
    )


def get_newest(store: Store, text: str) -> Version:
    """Return the newest version of the registered workflow *text*, which may be a removal.

    Raises:
        Refused: no workflow has this name.
        StoreDamaged, BadMessage: its newest commit cannot be read.
    """
    name = unicodedata.normalize("NFC", text)
    names = list_names(store)
    version = find_version(store, name) if name in names else None
    if version is None:
        raise no_such_workflow(text, difflib.get_close_matches(text, names, n=3))
    return version


def get_present(store: Store, text: str) -> Version:
    """Return the newest version of the registered workflow *text*, as ``get_newest``.

    Raises:
        WorkflowRemoved: it was removed.
    """
    version = get_newest(store, text)
    if version.is_removed:
        raise WorkflowRemoved(version)
    return version


def choose_version(name: str, versions: Sequence[Version], text: str) -> Version:
    """Return the version that *text* names, of *versions* of the workflow *name*, newest first.

    *text* is a prefix of a workflow's hash or of a version's commit. Of several versions with one
    workflow hash, the newest is returned.

    Raises:
        Refused: none begins so.
        Refused: several begin so.
    """
    prefix = _node_prefix(text)
    found: dict[str, Version] = {}
    for version in versions:
        if prefix is not None and version.workflow.startswith(prefix):
            found.setdefault(version.workflow, version)
        elif len(text) >= _SHORTEST_COMMIT and version.commit.oid.startswith(text.lower()):
            found[version.commit.oid] = version
    if not found:
        raise _no_such_version(name, f"no version {text[:60]!r}")
    if len(found) > 1:
        raise _ambiguous_version(text, sorted(found))
    return found.popitem()[1]


def _node_prefix(text: str) -> str | None:
    try:
        return parse_node_prefix(text)
    except NotANodeHash:
        return None


class RolledBack(NamedTuple):
    """The outcome of a rollback."""

    name: str
    workflow: NodeHash
    version: str
    """The new commit."""

    restored: str
    """The commit of the restored version."""

    replaced: NodeHash | None
    """The workflow of the name before; None if it had been removed."""


def rollback_workflow(
    store: Store, caller: Caller, name: str, *, text: str | None = None, reason: str = ""
) -> RolledBack:
    """Restore the version that *text* (a hash) names as the newest one of the workflow *name*.

    Without *text*, restore the newest version that differs from the present one; of a removed
    workflow, the version before its removal.

    Raises:
        Refused: there is no such version, or several.
        Refused: it is the newest.
        WorkflowMoved: another process put a version at the same time.
        StoreDamaged: the old version cannot be read.
    """
    seen = get_newest(store, name)
    kept = (each for each in walk_versions(store, seen) if not each.is_removed)
    old = _before(seen, kept) if text is None else choose_version(seen.name, list(kept), text)
    if not seen.is_removed and old.commit.tree == seen.commit.tree:
        raise Refused(
            f"workflow {seen.name} is at {seen.workflow} already",
            code="already-there",
            hint=f"`uwf workflow history {seen.name}` lists the others",
            workflow=seen.name,
        )
    _check_whole(store, old)
    version = restore_version(store, seen, old, reason=reason, signing=caller.signing(store))
    return RolledBack(
        seen.name,
        version.workflow,
        version.commit.oid,
        old.commit.oid,
        None if seen.is_removed else seen.workflow,
    )


def _before(seen: Version, kept: Iterable[Version]) -> Version:
    for version in kept:
        if seen.is_removed or version.commit.tree != seen.commit.tree:
            return version
    raise _no_such_version(seen.name, "no version before its newest")


def _check_whole(store: Store, version: Version) -> None:
    """Read all of *version* before its name points at it again."""
    closure = list(
        walk_closure([version.workflow], lambda name: get_version_node(store, version, name))
    )
    parse_workflow(closure[0])
    read_sources(store.objects, version.commit)


class RemovedWorkflow(NamedTuple):
    """A workflow that was removed."""

    name: str
    workflow: NodeHash
    """The workflow that the name pointed at."""

    version: str
    """The commit of the removal."""


def remove_workflow(
    store: Store, caller: Caller, name: str, *, reason: str = ""
) -> RemovedWorkflow:
    """Remove the workflow *name* from the registry; `uwf workflow rollback` restores it.

    Threads are not affected: each carries its workflow.

    Raises:
        Refused, WorkflowRemoved: there is none.
        WorkflowMoved: another process put a version at the same time.
    """
    seen = get_present(store, name)
    removal = remove_version(store, seen, reason=reason, signing=caller.signing(store))
    return RemovedWorkflow(seen.name, seen.workflow, removal.commit.oid)
