"""A forger: rewrites the commits of a store as git objects, against all rules, refs included.

What is not forged stays as it is, and whatever comes after a forged commit goes on from it. The
forger knows the format of commits, trees and nodes, and nothing of who checks them.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dulwich.objects import Blob, Commit, ObjectID, ShaFile
from interop.forge import FILE, Files, path_of, read_tree, write_tree
from interop.honest_flows import Told, refs_of, set_refs

from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node
from uwf_git.store.nodes import encode_node

Change = Callable[[Commit], None]


@dataclass(slots=True)
class Forger:
    """A store to be forged, and where its first thread splits and joins."""

    told: Told
    split: ObjectID = field(init=False)
    join: ObjectID = field(init=False)
    twin: ObjectID = field(init=False)
    """The join of the other thread, which took the same steps."""

    def __post_init__(self) -> None:
        self.split = ObjectID(self.told.begun[f"refs/threads/{self.told.thread}"].encode())
        self.join, self.twin = (
            next(oid for oid in self.chain(self.tip(thread)) if self.event(oid) == "join")
            for thread in (self.told.thread, self.told.twin)
        )

    # What is there.

    def tip(self, thread: str) -> ObjectID:
        """Return the newest commit of a thread."""
        refs = refs_of(self.told.world.store)
        found = refs.get(f"refs/archive/{thread}") or refs[f"refs/threads/{thread}"]
        return ObjectID(found.encode())

    def get(self, oid: ObjectID) -> Commit:
        """Return a commit."""
        commit = self.told.world.store.objects[oid]
        assert isinstance(commit, Commit)
        return commit

    def parents(self, oid: ObjectID) -> list[ObjectID]:
        """Return the parents of a commit."""
        return list(self.get(oid).parents)

    def event(self, oid: ObjectID) -> str:
        """Return what a commit says that it is."""
        return self.trailer(oid, "Event")

    def trailer(self, oid: ObjectID, name: str) -> str:
        """Return the value of one of its trailers; "" without it."""
        found = re.search(rf"^Uwf-{name}: (.*)$", self.get(oid).message.decode(), re.MULTILINE)
        return found[1] if found else ""

    def chain(self, oid: ObjectID) -> list[ObjectID]:
        """Return the commits of one thread up to *oid*, the oldest first."""
        found = [oid]
        while self.event(found[-1]) != "start":
            found.append(self.parents(found[-1])[0])
        return found[::-1]

    @property
    def ends(self) -> list[ObjectID]:
        """The ends of the branches of the first split."""
        return self.parents(self.join)[1:]

    def branch(self, number: int) -> list[ObjectID]:
        """Return the commits of a branch of the first split."""
        return self.chain(self.ends[number])

    def after(self, oid: ObjectID) -> ObjectID:
        """Return the commit of the first thread that follows *oid*."""
        chain = self.chain(self.tip(self.told.thread))
        return chain[chain.index(oid) + 1]

    def files(self, oid: ObjectID) -> Files:
        """Return the files of a commit, by path."""
        return read_tree(self.told.world.store.objects, self.get(oid).tree)

    def read(self, sha: ObjectID) -> bytes:
        """Return the content of a file."""
        return bytes(self.told.world.store.objects[sha].as_raw_string())

    # Forging.

    def add(self, obj: ShaFile) -> ObjectID:
        """Write a loose object."""
        name = obj.id.decode()
        path = Path(self.told.world.store.path, "objects", name[:2], name[2:])
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(obj.as_legacy_object())
        return obj.id

    def rewrite(self, changes: Mapping[ObjectID, Change]) -> dict[ObjectID, ObjectID]:
        """Write every commit anew with its *changes*, and move the refs; return what became what.

        The parents of a commit that is changed are new already.
        """
        made: dict[ObjectID, ObjectID] = {}
        refs = refs_of(self.told.world.store)
        for oid in self._list_commits([ObjectID(each.encode()) for each in refs.values()]):
            commit = self.get(oid).copy()
            assert isinstance(commit, Commit)
            commit.parents = [made[each] for each in commit.parents]
            if oid in changes:
                changes[oid](commit)
            made[oid] = self.add(commit)
        moved = {name: made[ObjectID(oid.encode())].decode() for name, oid in refs.items()}
        set_refs(self.told.world.store.path, moved)
        return made

    def _list_commits(self, tips: list[ObjectID]) -> Iterator[ObjectID]:
        """Yield commits, each after its parents."""
        seen: set[ObjectID] = set()
        waiting = [(oid, False) for oid in tips]
        while waiting:
            oid, is_ready = waiting.pop()
            if is_ready:
                yield oid
            elif oid not in seen:
                seen.add(oid)
                waiting.append((oid, True))
                waiting += [(each, False) for each in self.parents(oid)]

    def makes(self, oid: ObjectID, change: Change) -> ObjectID:
        """Write one more commit like *oid*, changed; no ref moves."""
        commit = self.get(oid).copy()
        assert isinstance(commit, Commit)
        change(commit)
        return self.add(commit)

    def now(self, edit: Callable[[dict[str, Any]], object]) -> Change:
        """Change the state of the thread in a commit."""

        def change(commit: Commit) -> None:
            files = self.files_of(commit)
            document = json.loads(self.read(files["now.json"][1]))
            edit(document)
            content = json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"
            files["now.json"] = self._file(content)
            self.holds(commit, files)

        return change

    def replaces(self, names: Mapping[str, Node]) -> Change:
        """Put other nodes in place of those that a commit has, in all that it says."""

        def change(commit: Commit) -> None:
            files = self.files_of(commit)
            for old, node in names.items():
                for path in [each for each in files if name_of(each) == old]:
                    del files[path]
                    suffix, content = encode_node(node)
                    files[path_of(node.hash) + suffix] = self._file(content)
            for path in ("head.json", "start.json"):
                old = self._name_of_file(files[path][1])
                if old in names:
                    files[path] = self._file(encode_node(names[old])[1])
            now = self.read(files["now.json"][1])
            for old, node in names.items():
                now = now.replace(old.encode(), node.hash.encode())
                commit.message = commit.message.replace(old.encode(), node.hash.encode())
            files["now.json"] = self._file(now)
            self.holds(commit, files)

        return change

    def _name_of_file(self, sha: ObjectID) -> str:
        document = json.loads(self.read(sha))
        return build_node(document["type"], document["payload"], timestamp=0).hash

    def _file(self, content: bytes) -> tuple[int, ObjectID]:
        return FILE, self.add(Blob.from_string(content))

    def files_of(self, commit: Commit) -> Files:
        """Return the files of a commit that was changed, by path."""
        return self.files(self.add(commit))

    def holds(self, commit: Commit, files: Files) -> None:
        """Give a commit these files."""
        commit.tree = write_tree(files, self.add)

    def nodes(self, oid: ObjectID) -> dict[str, Node]:
        """Return the nodes of a commit, by name."""
        found: dict[str, Node] = {}
        for path, (_mode, sha) in self.files(oid).items():
            name, content = NodeHash(name_of(path)), self.read(sha)
            if name and path.endswith(".md"):
                _, kind, time, _, text = content.decode().split("\n", 4)
                found[name] = Node(name, NodeHash(kind[6:]), text, int(time[11:]))
            elif name:
                given = json.loads(content)
                kind = NodeHash(given["type"])
                found[name] = Node(name, kind, given["payload"], given["timestamp"])
        return found

    def edited(self, oid: ObjectID, edits: Mapping[str, Any]) -> dict[str, Node]:
        """Edit nodes of a commit, and all that refer to them; return the new ones by old name.

        An edit is another text, or the members that change.
        """
        nodes, made = self.nodes(oid), {}
        for name, edit in edits.items():
            old = nodes[name]
            payload = edit if isinstance(edit, str) else {**old.payload, **edit}
            made[name] = build_node(old.type, payload, timestamp=old.timestamp)
        while True:
            more = {}
            for name, old in nodes.items():
                text = json.dumps((made.get(name, old)).payload)
                new = text
                for other, node in made.items():
                    new = new.replace(f'"{other}"', f'"{node.hash}"')
                if new != text:
                    more[name] = build_node(old.type, json.loads(new), timestamp=old.timestamp)
            if not more:
                return made
            made.update(more)


def name_of(path: str) -> str:
    """Return the name of the node in a file; "" if it is none's."""
    name = path.removeprefix("nodes/").partition(".")[0].replace("/", "")
    return name if path.startswith("nodes/") else ""


def claims(**values: str) -> Change:
    """Give trailers other values: ``claims(Status="completed")``."""

    def change(commit: Commit) -> None:
        for name, value in values.items():
            pattern = rf"(?m)^Uwf-{name.replace('_', '-')}: .*$"
            text, count = re.subn(
                pattern, f"Uwf-{name.replace('_', '-')}: {value}", commit.message.decode()
            )
            assert count == 1, commit.message
            commit.message = text.encode()

    return change


def follows(edit: Callable[[list[ObjectID]], list[ObjectID]]) -> Change:
    """Change the parents of a commit."""

    def change(commit: Commit) -> None:
        commit.parents = edit(list(commit.parents))

    return change


def dated(seconds: int) -> Change:
    """Move the dates of a commit."""

    def change(commit: Commit) -> None:
        commit.author_time += seconds
        commit.commit_time += seconds

    return change
