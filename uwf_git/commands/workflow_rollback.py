"""`uwf workflow rollback`: an older version becomes the newest one again.

Owns: which version is meant. Always true: nothing is rewritten; what is brought back is an
earlier version byte for byte, and was read in full first. Nobody's agents are trusted by it:
a version may have been fetched.
"""

from collections.abc import Iterable
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.workflow_version import NoSuchVersion, choose_version, get_newest
from uwf_git.errors import Refused
from uwf_git.model.closure import walk_closure
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.registry import Version, get_version_node, restore_version, walk_versions
from uwf_git.store.store import Store
from uwf_git.store.workflow_tree import read_sources


class AlreadyThere(Refused):
    """The version that is to be brought back is the newest one."""

    code = "already-there"

    def __init__(self, version: Version) -> None:
        super().__init__(
            f"workflow {version.name} is at {version.workflow} already",
            hint=f"`uwf workflow history {version.name}` lists the others",
            workflow=version.name,
        )


class RolledBack(NamedTuple):
    """A workflow whose newest version is an older one again."""

    name: str
    workflow: NodeHash
    version: str
    """The new commit."""

    restored: str
    """The commit of the version that was brought back."""

    replaced: NodeHash | None
    """The workflow that its name meant before; None if it had been removed."""


def rollback_workflow(
    store: Store, caller: Caller, name: str, *, text: str | None = None, reason: str = ""
) -> RolledBack:
    """Make the version that *text* (a hash) means the newest one of the workflow *name*.

    Without *text* it is the one before the newest: the newest that differs from it, or, of a
    workflow that was removed, the one that was.

    Raises:
        NoSuchWorkflow, NoSuchVersion, AmbiguousVersion: nothing is meant, or several.
        AlreadyThere: it is the newest.
        WorkflowMoved: somebody else put a version at the same time.
        StoreDamaged: the old version cannot be read.
    """
    seen = get_newest(store, name)
    kept = (each for each in walk_versions(store, seen) if not each.is_removed)
    old = _before(seen, kept) if text is None else choose_version(seen.name, list(kept), text)
    if not seen.is_removed and old.commit.tree == seen.commit.tree:
        raise AlreadyThere(seen)
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
    raise NoSuchVersion(seen.name, "no version before its newest")


def _check_whole(store: Store, version: Version) -> None:
    """Make sure that all of it is there, before it is what the name means."""
    closure = list(
        walk_closure([version.workflow], lambda name: get_version_node(store, version, name))
    )
    parse_workflow(closure[0])
    read_sources(store.objects, version.commit)
