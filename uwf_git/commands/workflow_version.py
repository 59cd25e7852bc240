"""Versions of a registered workflow: finding the name, and one of its versions.

Owns: what `<name> [hash]` on a command line means. Knows nothing of: files of a project.
"""

import difflib
import unicodedata
from collections.abc import Sequence

from uwf_git.commands.find_workflow import WorkflowRemoved
from uwf_git.errors import Refused
from uwf_git.model.node_hash import NotANodeHash, parse_node_prefix
from uwf_git.store.registry import NoSuchWorkflow, Version, find_version, list_names
from uwf_git.store.store import Store

# git's own shortest abbreviation.
_SHORTEST_COMMIT = 4
_MOST_LISTED = 10


class NoSuchVersion(Refused):
    """No version of the workflow is meant."""

    code = "no-such-version"

    def __init__(self, name: str, what: str) -> None:
        super().__init__(
            f"workflow {name} has {what}",
            hint=f"`uwf workflow history {name}` lists its versions",
            workflow=name,
        )


class AmbiguousVersion(Refused):
    """Several versions begin so."""

    code = "ambiguous-version"

    def __init__(self, text: str, matches: list[str]) -> None:
        super().__init__(
            f"{len(matches)} versions begin with {text}: {', '.join(matches[:_MOST_LISTED])}",
            hint="give more of the hash",
            matches=matches,
        )


def get_newest(store: Store, text: str) -> Version:
    """Give the newest commit of the registered workflow that *text* names, a removal or not.

    Raises:
        NoSuchWorkflow: none is named so.
        DamagedCommit, BadMessage: its commit is none of ours.
    """
    name = unicodedata.normalize("NFC", text)
    names = list_names(store)
    version = find_version(store, name) if name in names else None
    if version is None:
        raise NoSuchWorkflow(text, difflib.get_close_matches(text, names, n=3))
    return version


def get_present(store: Store, text: str) -> Version:
    """Give the newest version of the registered workflow that *text* names.

    Raises:
        As ``get_newest``; WorkflowRemoved: it is there no more.
    """
    version = get_newest(store, text)
    if version.is_removed:
        raise WorkflowRemoved(version)
    return version


def choose_version(name: str, versions: Sequence[Version], text: str) -> Version:
    """Give the version, of *versions* of the workflow *name*, newest first, that *text* means.

    It is a workflow's hash or a beginning of it, or the commit's: of several versions of one
    workflow the newest is meant.

    Raises:
        NoSuchVersion: there is none.
        AmbiguousVersion: several begin so.
    """
    prefix = _node_prefix(text)
    found: dict[str, Version] = {}
    for version in versions:
        if prefix is not None and version.workflow.startswith(prefix):
            found.setdefault(version.workflow, version)
        elif len(text) >= _SHORTEST_COMMIT and version.commit.oid.startswith(text.lower()):
            found[version.commit.oid] = version
    if not found:
        raise NoSuchVersion(name, f"no version {text[:60]!r}")
    if len(found) > 1:
        raise AmbiguousVersion(text, sorted(found))
    return found.popitem()[1]


def _node_prefix(text: str) -> str | None:
    try:
        return parse_node_prefix(text)
    except NotANodeHash:
        return None
