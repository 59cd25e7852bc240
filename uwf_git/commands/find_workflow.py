"""Finding a workflow: by name, or by the hash of any version.

Owns: what `<workflow>` on a command line means. Knows nothing of: threads.
"""

import difflib
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from uwf_git.model.builtin import WORKFLOW
from uwf_git.model.closure import walk_closure
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash, NotANodeHash, is_node_hash, parse_node_prefix
from uwf_git.model.workflow import Workflow, parse_workflow
from uwf_git.store.node_lookup import AmbiguousNode, NodeLookup, NoSuchNode
from uwf_git.store.node_tree import MissingNode
from uwf_git.store.registry import (
    NoSuchWorkflow,
    Version,
    find_version,
    get_version_node,
    list_names,
    list_versions,
)
from uwf_git.store.store import Store


class FoundWorkflow(NamedTuple):
    """A workflow with every node that it reaches."""

    workflow: Workflow
    closure: tuple[Node, ...]


def find_workflow(store: Store, text: str) -> FoundWorkflow:
    """Find the workflow that *text* means: a name (its newest version), or a hash.

    Raises:
        NoSuchWorkflow: none is meant.
        AmbiguousNode: several hashes begin so.
        DamagedNode, MissingNode: it cannot be read.
    """
    name = unicodedata.normalize("NFC", text)
    version = find_version(store, name) if name in list_names(store) else None
    if version is not None:
        return _of_version(store, version)
    try:
        prefix = parse_node_prefix(text)
    except NotANodeHash:
        raise _no_such(store, text) from None
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
    return _found(version.workflow, lambda name: get_version_node(store, version, name))


def _of_any_ref(store: Store, text: str, prefix: str) -> FoundWorkflow:
    """Find a workflow wherever it is kept: an old version, or that of a thread from elsewhere."""
    lookup = NodeLookup(store)
    try:
        node = lookup.get(lookup.resolve(prefix))
    except NoSuchNode:
        raise _no_such(store, text) from None
    if node.type != WORKFLOW:
        raise _no_such(store, text)

    def get_part(name: NodeHash) -> Node:
        part = lookup.find(name)
        if part is None:
            raise MissingNode(name)
        return part

    return _found(node.hash, get_part)


def _found(root: NodeHash, get_node: Callable[[NodeHash], Node]) -> FoundWorkflow:
    closure = tuple(walk_closure([root], get_node))
    return FoundWorkflow(parse_workflow(closure[0]), closure)


def _no_such(store: Store, text: str) -> NoSuchWorkflow:
    near = difflib.get_close_matches(text, list_names(store), n=3)
    return NoSuchWorkflow(text, near)
