"""A hostile client: take an honest commit apart, change a part, and put it together again."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dulwich.object_store import iter_tree_contents
from dulwich.objects import Blob, ObjectID, ShaFile, Tree

from uwf_git.model.names import Oid
from uwf_git.model.node import Node
from uwf_git.store.nodes import encode_node
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.objects.objects import DurableObjects, ObjectStore
from uwf_git.store.store import Store

FILE, FOLDER = 0o100644, 0o040000
Files = dict[str, tuple[int, ObjectID]]
"""Mode and object by path."""


@dataclass(slots=True)
class Forge:
    """The parts of one commit, to be changed before it is made."""

    objects: DurableObjects
    files: Files
    parents: list[Oid]
    message: bytes
    author: bytes = b"writer <uwf-nobody@uwf>"
    committer: bytes = b"C O Mitter <committer@example.com>"
    headers: bytes = b""
    """More lines behind the committer."""

    def write(self, path: str, content: bytes, *, mode: int = FILE) -> ObjectID:
        """Put a file there."""
        return self.put(path, Blob.from_string(content), mode=mode)

    def put(self, path: str, obj: ShaFile, *, mode: int = FILE) -> ObjectID:
        """Put an object there."""
        self.files[path] = (mode, self._add(obj))
        return obj.id

    def read(self, path: str) -> Any:
        """Return the JSON document of a file."""
        return json.loads(self.objects[self.files[path][1]].as_raw_string())

    def add_node(self, node: Node) -> str:
        """Put a node where it belongs, and return its path."""
        suffix, content = encode_node(node)
        path = path_of(node.hash) + suffix
        self.write(path, content)
        return path

    def say(self, old: str, new: str) -> None:
        """Replace a part of the message, which is there."""
        assert old.encode() in self.message
        self.message = self.message.replace(old.encode(), new.encode(), 1)

    def commit(self) -> str:
        """Write the commit without git's checks, and return its id."""
        lines = [b"tree " + write_tree(self.files, self._add)]
        lines += [b"parent " + parent.encode() for parent in self.parents]
        lines += [b"author %s 1760009999 +0000" % self.author]
        lines += [b"committer %s 1760009999 +0000" % self.committer]
        raw = b"\n".join(lines) + b"\n" + self.headers + b"\n" + self.message
        return self._add(ShaFile.from_raw_string(1, raw)).decode()

    def _add(self, obj: ShaFile) -> ObjectID:
        self.objects.add_objects([(obj, None)])
        return obj.id

    def copy(self) -> "Forge":
        """Return another one of the same parts."""
        other = copy.copy(self)
        other.files, other.parents = dict(self.files), list(self.parents)
        return other


def take_apart(store: Store, oid: Oid) -> Forge:
    """Take a commit apart."""
    assert isinstance(store.objects, DurableObjects)
    view = read_commit(store.objects, oid)
    files = read_tree(store.objects, view.tree)
    return Forge(store.objects, files, list(view.parents), view.message, author=view.author)


def read_tree(objects: ObjectStore, tree: ObjectID) -> Files:
    """Return the files of a tree and of those in it."""
    assert isinstance(objects, DurableObjects)
    return {
        entry.path.decode(): (entry.mode, entry.sha)
        for entry in iter_tree_contents(objects.by_dulwich, tree)
        if entry.path is not None and entry.mode is not None and entry.sha is not None
    }


def write_tree(files: Files, add: Callable[[ShaFile], ObjectID], folder: str = "") -> ObjectID:
    """Write a tree of *files*, and those in it, by *add*; return its name."""
    tree = Tree()
    for path, file in files.items():
        name, slash, _rest = path.removeprefix(folder).partition("/")
        if path.startswith(folder) and name.encode() not in tree:
            inner = f"{folder}{name}/"
            tree[name.encode()] = (FOLDER, write_tree(files, add, inner)) if slash else file
    return add(tree)


def path_of(name: str) -> str:
    """Return the path of a node's file, without its suffix."""
    return f"nodes/{name[0]}/{name[1]}/{name[2:]}"
