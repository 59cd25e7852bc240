"""Read a thread by dulwich alone: the baseline for the benchmark of reading.

It reads each object that a command needs once, and checks no node.
"""

import json
from collections.abc import Iterable
from contextlib import closing
from typing import Any

from bench.world import Thread
from dulwich.object_store import DiskObjectStore
from dulwich.objects import Blob, Commit, ObjectID, Tree

from uwf_git.store.threads.heads import get_head


def read_steps(thread: Thread) -> int:
    """Read every step and its content from the tip's nodes; return their number."""
    with closing(DiskObjectStore(f"{thread.store.path}/objects")) as store:
        objects = _Objects(store)
        commit = objects.commit(_tip(thread))
        nodes = objects.folder(commit.tree)[b"nodes"][1]
        name, count = _head(commit), 0
        while True:
            payload: dict[str, Any] = json.loads(objects.blob(nodes, name))["payload"]
            if "prev" not in payload:
                return count
            objects.blob(nodes, payload["content"]["$ref"])
            name = payload["prev"]["$ref"]
            count += 1


def read_commits_and_steps(thread: Thread) -> int:
    """Read every commit as well; return their number."""
    read_steps(thread)
    with closing(DiskObjectStore(f"{thread.store.path}/objects")) as store:
        waiting, count = [_tip(thread)], 0
        while waiting:
            waiting = _Objects(store).commit(waiting[0]).parents[:1]
            count += 1
        return count


def read_states(path: str, commits: Iterable[str]) -> int:
    """Read each of *commits*, its tree and its now.json; return their number."""
    count = 0
    with closing(DiskObjectStore(f"{path}/objects")) as store:
        for oid in commits:
            tree = store[_Objects(store).commit(ObjectID(oid.encode())).tree]
            json.loads(store[tree[b"now.json"][1]].as_raw_string())  # type: ignore[index]  # a Tree
            count += 1
    return count


def _tip(thread: Thread) -> ObjectID:
    return ObjectID(get_head(thread.store, thread.id).commit.encode())


def _head(commit: Commit) -> str:
    mark = b"Uwf-Node: "
    (line,) = (line for line in commit.message.splitlines() if line.startswith(mark))
    return str(line.removeprefix(mark), "ascii")


class _Objects:
    """The objects of a store, each folder held once it was read."""

    def __init__(self, store: DiskObjectStore) -> None:
        self._objects = store
        self._folders: dict[bytes, Tree] = {}

    def commit(self, oid: ObjectID) -> Commit:
        found = self._objects[oid]
        assert isinstance(found, Commit)
        return found

    def folder(self, oid: ObjectID) -> Tree:
        if oid not in self._folders:
            found = self._objects[oid]
            assert isinstance(found, Tree)
            self._folders[oid] = found
        return self._folders[oid]

    def blob(self, nodes: ObjectID, name: str) -> bytes:
        folder = self.folder(nodes)
        for part in name[:2]:
            folder = self.folder(folder[part.encode()][1])
        endings = (b".json", b".md")
        (entry,) = (name[2:].encode() + end for end in endings if name[2:].encode() + end in folder)
        found = self._objects[folder[entry][1]]
        assert isinstance(found, Blob)
        return found.data
