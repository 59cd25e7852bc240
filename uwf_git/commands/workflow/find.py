"""Find a workflow: a file of the project, else a registered or shipped name, else a hash.

A removed name is not found; the hashes of its versions still are.
"""

import difflib
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from uwf_git.commands.workflow.local import (
    BadLocalWorkflow,
    LocalFile,
    build_local,
    find_local,
    list_local,
)
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import WORKFLOW
from uwf_git.model.frozen import freeze
from uwf_git.model.names import NodeHash, NotANodeHash, is_node_hash, parse_node_prefix
from uwf_git.model.node import Node
from uwf_git.model.references import walk_closure
from uwf_git.model.text import render_time
from uwf_git.model.workflow import Workflow, parse_workflow
from uwf_git.store.lookup.lookup import AmbiguousNode, NodeLookup, NoSuchNode
from uwf_git.store.nodes.tree import MissingNode
from uwf_git.store.objects.byte_cache import ByteCache
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.workflows.registry import (
    Version,
    find_shipped,
    find_version,
    get_version_node,
    list_names,
    list_shipped,
    list_versions,
    no_such_workflow,
)

if TYPE_CHECKING:
    from uwf_git.model.definition.definition import FindUsed


class WorkflowRemoved(Refused):
    """The workflow of this name was removed."""

    code = "workflow-removed"

    def __init__(self, removal: Version) -> None:
        name, who = removal.name, removal.commit.author.decode(errors="replace")
        super().__init__(
            f"workflow {name} was removed {render_time(removal.commit.time_s * 1000)} by {who}",
            hint=f"`uwf workflow rollback {name}` brings it back, and so does putting it again; "
            f"`uwf workflow history {name}` shows why it was removed",
            workflow=name,
            version=removal.commit.oid,
        )


class FoundWorkflow(NamedTuple):
    """A workflow with all nodes that it reaches."""

    workflow: Workflow
    closure: tuple[Node, ...]

    file: str | None = None
    """The file of the project or of uwf that it was read from; None if it is registered."""

    shadows: NodeHash | None = None
    """The registered workflow of the same name that the file hides, if there is one."""


# What a node of a workflow takes in memory, with what was parsed of it, about.
_NODE_BYTES = 10_000

_VERSIONS: ByteCache[Oid, FoundWorkflow] = ByteCache(8 * 1024 * 1024)


def find_workflow(
    store: Store, text: str, *, cwd: str | None = None, users: tuple[str, ...] = ()
) -> FoundWorkflow:
    """Find the workflow that *text* names: a name (its newest version), or a hash.

    With *cwd* the files of the project around it come first, and the shipped ones after the
    registry; without it, only the registry counts. *users* are the files of the project that use
    it, outermost first.

    Raises:
        Refused, WorkflowRemoved: there is none.
        BadLocalWorkflow: it is a file of the project, and invalid.
        AmbiguousNode: several hashes begin so.
        DamagedNode, MissingNode: it cannot be read.
    """
    name = unicodedata.normalize("NFC", text)
    local = None if cwd is None else find_local(cwd, name)
    if local is not None:
        return _of_local(store, local, cwd, users)
    version = find_version(store, name) if name in list_names(store) else None
    if version is not None and version.is_removed:
        raise WorkflowRemoved(version)
    if version is not None:
        return _of_version(store, version)
    shipped = None if cwd is None else find_shipped(name)
    if shipped is not None:
        return _of_local(store, LocalFile(*shipped, is_shipped=True), cwd, users)
    try:
        prefix = parse_node_prefix(text)
    except NotANodeHash:
        raise _no_such(store, text, cwd) from None
    try:
        return _of_hash(store, text, prefix)
    except NoSuchNode:
        found = None if cwd is None else _of_local_hash(store, cwd, prefix)
        if found is None:
            raise _no_such(store, text, cwd) from None
        return found


def find_shipped_workflow(store: Store, name: str) -> FoundWorkflow:
    """Return the workflow *name* that uwf brings, whatever else has that name.

    Raises:
        Refused: it brings none.
    """
    shipped = find_shipped(name)
    if shipped is None:
        raise _no_such(store, name, None)
    return _of_local(store, LocalFile(*shipped, is_shipped=True), None)


def find_shadowed(store: Store, name: str) -> NodeHash | None:
    """Return the registered workflow that a file of the project named *name* hides."""
    try:
        version = find_version(store, name) if name in list_names(store) else None
    except StoreDamaged:
        # A damaged registered workflow is not the one that was named.
        return None
    return None if version is None or version.is_removed else version.workflow


def find_used(store: Store, cwd: str | None, *users: str) -> "FindUsed":
    """Return how a file finds the workflows that it uses: as ``find_workflow``, each once.

    *users* are the files of the project that use that file, and the file itself if it is one,
    outermost first.
    """
    from uwf_git.model.definition.definition import UsedWorkflow  # noqa: PLC0415 (few threads use any)

    known: dict[str, UsedWorkflow | str] = {}

    def find(name: str) -> UsedWorkflow | str:
        if name not in known:
            known[name] = find_first(name)
        return known[name]

    def find_first(name: str) -> UsedWorkflow | str:
        if name in users:
            return f"workflow {name} cannot contain itself: {' uses '.join((*users, name))}"
        try:
            found = find_workflow(store, name, cwd=cwd, users=users)
        except Refused as error:
            return error.message
        return UsedWorkflow(found.workflow.hash, found.closure)

    return find


def _of_local(
    store: Store, local: LocalFile, cwd: str | None, users: tuple[str, ...] = ()
) -> FoundWorkflow:
    built = build_local(local, find_used(store, cwd, *users, local.name))
    return FoundWorkflow(
        parse_workflow(built.node),
        (built.node, *built.closure),
        local.path,
        find_shadowed(store, local.name),
    )


def _of_local_hash(store: Store, cwd: str, prefix: str) -> FoundWorkflow | None:
    """Return the workflow of the project whose hash begins so: `workflow list` shows it."""
    for local in list_local(cwd):
        try:
            found = _of_local(store, local, cwd)
        except BadLocalWorkflow:
            continue
        if found.workflow.hash.startswith(prefix):
            return found
    return None


def _of_hash(store: Store, text: str, prefix: str) -> FoundWorkflow:
    if not is_node_hash(prefix):
        versions = {
            version.workflow: version
            for version in list_versions(store)
            if version.workflow.startswith(prefix)
        }
        if len(versions) == 1:
            return _of_version(store, versions.popitem()[1])
        if versions:
            raise AmbiguousNode(text, sorted(versions))
    return _of_any_ref(store, text, prefix)


def _of_version(store: Store, version: Version) -> FoundWorkflow:
    """Return the workflow of a version, read once in a process: a commit never changes."""
    found = _VERSIONS.get(version.commit.oid)
    if found is None:
        read = _found(version.workflow, lambda name: get_version_node(store, version, name))
        closure = tuple(each._replace(payload=freeze(each.payload)) for each in read.closure)
        found = FoundWorkflow(parse_workflow(closure[0]), closure)
        _VERSIONS.put(version.commit.oid, found, _NODE_BYTES * len(closure))
    return found


def _of_any_ref(store: Store, text: str, prefix: str) -> FoundWorkflow:
    """Find a workflow under any ref: an old version, or that of a fetched thread."""
    lookup = NodeLookup(store)
    node = lookup.get(lookup.resolve(prefix))
    if node.type != WORKFLOW:
        raise _no_such(store, text, None)

    def get_part(name: NodeHash) -> Node:
        part = lookup.find(name)
        if part is None:
            raise MissingNode(name)
        return part

    return _found(node.hash, get_part)


def _found(root: NodeHash, get_node: Callable[[NodeHash], Node]) -> FoundWorkflow:
    closure = tuple(walk_closure([root], get_node))
    return FoundWorkflow(parse_workflow(closure[0]), closure)


def _no_such(store: Store, text: str, cwd: str | None) -> Refused:
    local = [] if cwd is None else [file.name for file in list_local(cwd)]
    shipped = [] if cwd is None else [file.name for file in list_shipped()]
    known = dict.fromkeys([*local, *list_names(store), *shipped])
    # A listed file may have a name that no workflow can have.
    known.pop(text, None)
    near = difflib.get_close_matches(text, known, n=3)
    return no_such_workflow(text, near)
