"""A recorded commit of each event: it is made again byte for byte, and no byte can be another.

The commits were written once by real commands (format-2.bundle), and are never made anew: they
are the second description of the format, beside the functions that writers and verify share.
"""

import hashlib
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from commands.forging import commits_of, tip_of
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree

from uwf_git.commands.verify.history import Finding
from uwf_git.commands.verify.nodes import TreeChecks
from uwf_git.commands.verify.thread import Claim, ThreadChecks
from uwf_git.commands.verify.verify import verify
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import EVENTS
from uwf_git.store.oid import Oid
from uwf_git.store.refs.refs import list_refs
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import ARCHIVE
from uwf_git.store.threads.message import parse_thread_message
from uwf_git.store.threads.snapshot import NOW_FILE

RECORDED = Path(__file__).parent / "recorded" / "format-2.bundle"
# Of each event the newest; of these, which look otherwise in places, one more.
MORE = {"start of a branch", "verdict"}
# A commit has some 1,500 bytes with its tree and now.json: plain pytest changes some of them.
SOME = 29


class Recorded(NamedTuple):
    """One recorded commit."""

    thread: ThreadId
    oid: Oid
    parent: Oid | None


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store with the recorded threads."""
    path = str(tmp_path_factory.mktemp("recorded"))
    for command in (["init", "-q", "--bare"], ["fetch", "-q", str(RECORDED), "refs/*:refs/*"]):
        subprocess.run(["git", "-C", path, *command], check=True)
    return open_store(path)


@cache
def list_recorded(path: str) -> dict[str, Recorded]:
    """Return a commit of each event."""
    store = open_store(path)
    found: dict[str, Recorded] = {}
    for name in list_refs(path, ARCHIVE):
        for commit in commits_of(store, tip_of(store, ARCHIVE + name)):
            record = parse_thread_message(commit.message)
            parents = [Oid(each.decode()) for each in commit.parents]
            made = Recorded(record.thread, Oid(commit.id.decode()), parents[0] if parents else None)
            kind: str = record.event
            if kind == "start" and parents:
                kind = "start of a branch"
            elif record.retries_left is not None and kind == "step":
                kind = "verdict"
            found[kind] = made
    return found


def test_recorded_commits_are_made_again(store: Store) -> None:
    result = verify(store, [])

    assert (result.troubles, result.notes) == ((), ())
    assert list_recorded(store.path).keys() == {*EVENTS, *MORE}


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


@pytest.mark.parametrize("kind", sorted({*EVENTS, *MORE}))
def test_no_byte_can_be_another(store: Store, kind: str) -> None:
    change_bytes(store, kind, SOME)


def change_bytes(store: Store, kind: str, step: int) -> None:
    """Change every byte, or each *step*th, of commit, tree and now.json in turn."""
    made = list_recorded(store.path)[kind]
    commit = store.objects[ObjectID(made.oid.encode())]
    assert isinstance(commit, Commit)
    content = commit.as_raw_string()
    tree = store.objects[commit.tree]
    assert isinstance(tree, Tree)
    now = store.objects[tree[NOW_FILE.encode()][1]].as_raw_string()
    assert check(store, made, [], commit.id) == []

    unseen = set()
    for number in range(0, len(content), step):
        other = Raw(Commit, flipped(content, number))
        if not check(store, made, [other], other.id):
            unseen.add(number)
    assert unseen <= list_free(kind, content), shown(content, unseen)
    held = tree.as_raw_string()
    for number in range(0, len(held), step):
        objects, tip = with_tree(content, tree, Raw(Tree, flipped(held, number)))
        assert check(store, made, objects, tip), ("tree", number)
    place = held.index(b"now.json\0") + len(b"now.json\0")
    for number in range(0, len(now), step):
        blob = Raw(Blob, flipped(now, number))
        changed = held[:place] + bytes.fromhex(blob.id.decode()) + held[place + 20 :]
        objects, tip = with_tree(content, tree, Raw(Tree, changed))
        assert check(store, made, [*objects, blob], tip), ("now.json", number)


def with_tree(content: bytes, old: Tree, new: Raw) -> tuple[list[Raw], ObjectID]:
    """Return the objects of a commit with another tree, and its id."""
    commit = Raw(Commit, content.replace(old.id, new.id, 1))
    return [new, commit], commit.id


def shown(content: bytes, places: set[int]) -> list[bytes]:
    return [content[max(0, each - 30) : each + 10] for each in sorted(places)]
