"""Commits of which one byte is another, checked in the place of the true ones.

Nothing is written: the objects lie over those of the store.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree

from uwf_git.commands.verify.history import Finding
from uwf_git.commands.verify.nodes import TreeChecks
from uwf_git.commands.verify.thread import Claim, ThreadChecks
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.thread import TransitionRecord
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ARCHIVE
from uwf_git.store.threads.history import NOW_FILE


class Recorded(NamedTuple):
    """One recorded commit."""

    thread: ThreadId
    oid: Oid
    parent: Oid | None


class Raw(NamedTuple):
    """An object that need not be one that git would write."""

    kind: type[ShaFile]
    content: bytes

    @property
    def id(self) -> ObjectID:
        head = f"{self.kind.type_name.decode()} {len(self.content)}\0".encode()
        digest = hashlib.sha1(head + self.content, usedforsecurity=False).hexdigest()
        return ObjectID(digest.encode())


class Overlay:
    """The objects of a store, with some put over them."""

    def __init__(self, store: Store, objects: Iterable[Raw]) -> None:
        self._store = store
        self._own = {each.id: each for each in objects}

    def __contains__(self, oid: ObjectID) -> bool:
        return oid in self._own or oid in self._store.objects

    def __getitem__(self, oid: ObjectID) -> ShaFile:
        if oid not in self._own:
            return self._store.objects[oid]
        kind, content = self._own[oid]
        return ShaFile.from_raw_string(kind.type_num, content)

    def get_raw(self, oid: ObjectID) -> tuple[int, bytes]:
        if oid not in self._own:
            return self._store.objects.get_raw(oid)
        return self._own[oid].kind.type_num, self._own[oid].content


def check(store: Store, made: Recorded, objects: list[Raw], tip: ObjectID) -> list[Finding]:
    """Check the one commit *tip* in the place of the recorded one."""
    changed = store._replace(objects=Overlay(store, objects))  # type: ignore[arg-type]  # reads alone
    checks = ThreadChecks(TreeChecks(changed))
    claim = Claim(ARCHIVE + made.thread, made.thread, Oid(tip.decode()), "kept")
    return [*checks.check(claim, known=made.parent), *checks.finish()]


def flipped(content: bytes, number: int) -> bytes:
    """Return *content* with another letter, digit or sign in one place."""
    other = content[number] ^ (2 if chr(content[number]).isalnum() else 1)
    return content[:number] + bytes([other]) + content[number + 1 :]


def kind_of(record: TransitionRecord, parent: Oid | None) -> str:
    """Return the event of a commit, with a name of its own where it looks otherwise in places."""
    if record.event == "start" and parent is not None:
        return "start of a branch"
    is_verdict = record.event == "step" and record.retries_left is not None
    return "verdict" if is_verdict else record.event


def list_free(kind: str, content: bytes) -> set[int]:
    """Return the places of a commit whose bytes are free (FORMAT.md, "What is free")."""
    patterns = []
    if kind in {"step", "attempt", "verdict"}:
        patterns.append(rb"\ncommitter ([^<]* <[^>]*>)")
    if kind in {"answer", "fork", "kill"}:
        patterns.append(rb"\n\n    ([^\n]*)\n\nUwf-Thread")
    if kind in {"start", "fork"}:
        patterns.append(rb"\nUwf-Thread: ([^\n]*)")
    return {
        place
        for pattern in patterns
        for match in re.finditer(pattern, content)
        for place in range(match.start(1), match.end(1))
    }


def parts_of(store: Store, oid: Oid, *, file: str = NOW_FILE) -> dict[str, bytes]:
    """Return the bytes of a commit, of its tree and of a file in it."""
    commit = store.objects[ObjectID(oid.encode())]
    assert isinstance(commit, Commit)
    tree = store.objects[commit.tree]
    assert isinstance(tree, Tree)
    return {
        "commit": commit.as_raw_string(),
        "tree": tree.as_raw_string(),
        file: store.objects[tree[file.encode()][1]].as_raw_string(),
    }


def put_over(parts: dict[str, bytes], name: str, content: bytes) -> tuple[list[Raw], ObjectID]:
    """Return the objects of a commit that has *content* for one of its parts, and its id."""
    objects = []
    if name not in {"commit", "tree"}:
        objects.append(Raw(Blob, content))
        head = f"{name}\0".encode()
        old, new = (bytes.fromhex(Raw(Blob, each).id.decode()) for each in (parts[name], content))
        name, content = "tree", parts["tree"].replace(head + old, head + new, 1)
    if name == "tree":
        objects.append(Raw(Tree, content))
        content = parts["commit"].replace(Raw(Tree, parts["tree"]).id, objects[-1].id, 1)
    objects.append(Raw(Commit, content))
    return objects, objects[-1].id
