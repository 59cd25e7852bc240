"""The tree of a workflow commit: source files, Workflow node, closure.

Each file lies byte for byte at the path by which the workflow file includes it, so a checkout of
the tree can be put again.
Format: FORMAT.md, "The tree of a workflow commit".
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from dulwich.objects import Blob, ObjectID, ShaFile, Tree

from uwf_git.store.nodes.tree import FILE_MODE, NODES, TREE_MODE
from uwf_git.store.objects.commit import CommitView, read_commit_file
from uwf_git.store.objects.objects import ObjectStore, get_blob, get_tree

SOURCE_FILE = "workflow.yaml"
HEAD_FILE = "head.json"

_OWN = frozenset(name.encode() for name in (SOURCE_FILE, HEAD_FILE, NODES))


class SourceFiles(NamedTuple):
    """The files that a version was put from."""

    workflow: bytes
    included: Mapping[str, bytes] = MappingProxyType({})
    """By path relative to the workflow file."""


def build_tree(
    source: SourceFiles, *, head: ObjectID, nodes: ObjectID
) -> tuple[Tree, list[ShaFile]]:
    """Return the tree of a version, and its objects besides *head* and *nodes*."""
    top: dict[str, bytes] = {SOURCE_FILE: source.workflow, **source.included}
    tree, objects = _build_folder({tuple(path.split("/")): file for path, file in top.items()})
    tree[HEAD_FILE.encode()] = (FILE_MODE, head)
    tree[NODES.encode()] = (TREE_MODE, nodes)
    return tree, objects


def _build_folder(files: Mapping[tuple[str, ...], bytes]) -> tuple[Tree, list[ShaFile]]:
    tree, objects = Tree(), list[ShaFile]()
    folders: dict[str, dict[tuple[str, ...], bytes]] = {}
    for (first, *rest), content in files.items():
        if rest:
            folders.setdefault(first, {})[tuple(rest)] = content
            continue
        blob = Blob.from_string(content)
        tree[first.encode()] = (FILE_MODE, blob.id)
        objects.append(blob)
    for name, inner in folders.items():
        folder, below = _build_folder(inner)
        tree[name.encode()] = (TREE_MODE, folder.id)
        objects += [*below, folder]
    return tree, objects


def read_sources(objects: ObjectStore, commit: CommitView) -> SourceFiles:
    """Return the files that a version was put from, byte for byte.

    Raises:
        StoreDamaged, DamagedObject: one of them is missing.
    """
    top = get_tree(objects, commit.tree)
    included = {
        path: content
        for entry in top.items()
        if entry.path not in _OWN
        for path, content in _files(objects, (entry.mode, entry.sha), _name(entry.path))
    }
    return SourceFiles(read_commit_file(objects, commit, SOURCE_FILE), included)


def _files(
    objects: ObjectStore, entry: tuple[int, ObjectID], path: str
) -> Iterator[tuple[str, bytes]]:
    mode, oid = entry
    if mode != TREE_MODE:
        yield path, get_blob(objects, oid)
        return
    for inner in get_tree(objects, oid).items():
        yield from _files(objects, (inner.mode, inner.sha), f"{path}/{_name(inner.path)}")


def _name(raw: bytes) -> str:
    # Other programs may write any name; `uwf verify` reports it.
    return raw.decode(errors="surrogateescape")
