"""Forge threads and workflows: rewrite the commits of a ref with dulwich alone, against all rules.

All that is not forged stays byte for byte as it was.
"""

import hashlib
from collections.abc import Callable

from commands.world import World
from dulwich.objects import Blob, Commit, ObjectID, Tree

from uwf_git.commands.verify.history import Finding
from uwf_git.commands.verify.verify import verify
from uwf_git.model.builtin import ROLE, reference
from uwf_git.model.names import NodeHash, Oid
from uwf_git.model.node import build_node
from uwf_git.store.nodes import encode_node
from uwf_git.store.store import Store

FILE, FOLDER = 0o100644, 0o040000

Change = Callable[[Commit], None]

WRITER = "7418F2F2V21KQ"
"""The Role of the writer in the workflow demo, whose prompt is `Write.`, or this one."""
_TWIN = "Run it all 10587  d:M78 4,"


def tip_of(store: Store, ref: str) -> Oid:
    """Return the commit of *ref*."""
    tip = store.refs.find(ref)
    assert tip is not None
    return tip


def commits_of(store: Store, tip: Oid) -> list[Commit]:
    """Return the commits along first parents, oldest first."""
    found: list[Commit] = []
    oid: ObjectID | None = ObjectID(tip.encode())
    while oid is not None:
        commit = store.objects[oid]
        assert isinstance(commit, Commit)
        found.append(commit)
        oid = next(iter(commit.parents), None)
    return found[::-1]


def forge(store: Store, ref: str, changes: dict[int, Change]) -> list[Oid]:
    """Rewrite the commits of *ref* with *changes* by number (-1 is the newest), and move it.

    Return the ids of the changed commit and those after it, oldest first.
    """
    tip = tip_of(store, ref)
    old = commits_of(store, tip)
    numbered = {number % len(old): change for number, change in changes.items()}
    made: list[ObjectID] = []
    for number, commit in enumerate(old):
        copy = commit.copy()
        assert isinstance(copy, Commit)
        copy.parents = [*made[-1:], *commit.parents[1:]]
        if number in numbered:
            numbered[number](copy)
        add(store, copy)
        made.append(copy.id)
    oids = [Oid(each.decode()) for each in made]
    assert store.refs.advance(ref, seen=tip, to=oids[-1])
    return oids


def add(store: Store, obj: Blob | Tree | Commit) -> ObjectID:
    """Write an object."""
    store.objects.add_objects([(obj, None)])
    return obj.id


def says(old: str, new: str) -> Change:
    """Replace the first occurrence of a word in the message."""

    def change(commit: Commit) -> None:
        assert old.encode() in commit.message, commit.message
        commit.message = commit.message.replace(old.encode(), new.encode(), 1)

    return change


def run_by(name: bytes) -> Change:
    """Change the committer; a step's words and author stay true."""

    def change(commit: Commit) -> None:
        commit.committer = name

    return change


def holds(store: Store, path: str, content: bytes | None, *, mode: int = FILE) -> Change:
    """Put a file at *path* of the tree, or remove it."""
    blob = None if content is None else add(store, Blob.from_string(content))
    return points(store, path, blob, mode=mode)


def points(store: Store, path: str, oid: ObjectID | None, *, mode: int = FILE) -> Change:
    """Put the object *oid* at *path* of the tree, or remove it."""

    def change(commit: Commit) -> None:
        commit.tree = _planted(store, commit.tree, path.split("/"), oid, mode)

    return change


def _planted(
    store: Store, tree: ObjectID | None, parts: list[str], oid: ObjectID | None, mode: int
) -> ObjectID:
    planted = Tree()
    if tree is not None:
        old = store.objects[tree]
        assert isinstance(old, Tree)
        for entry in old.items():
            planted[entry.path] = (entry.mode, entry.sha)
    key = parts[0].encode()
    if len(parts) > 1:
        inner = planted[key][1] if key in planted else None
        planted[key] = (FOLDER, _planted(store, inner, parts[1:], oid, mode))
    elif oid is not None:
        planted[key] = (mode, oid)
    elif key in planted:
        del planted[key]
    return add(store, planted)


def also(*changes: Change) -> Change:
    """Combine several changes."""

    def change(commit: Commit) -> None:
        for each in changes:
            each(commit)

    return change


def place(node: str, suffix: str = ".json") -> str:
    """Return the path of a node's file."""
    return f"nodes/{node[0]}/{node[1]}/{node[2:]}{suffix}"


def twin_role(store: Store) -> Change:
    """Give the writer of the workflow demo another prompt, under the same name of its node."""
    schema = reference(NodeHash("9NPJ6YSFHSA85"))
    payload = {"name": "writer", "description": "Writes.", "systemPrompt": _TWIN}
    role = build_node(ROLE, {**payload, "outputSchema": schema}, timestamp=0)
    assert role.hash == WRITER
    return holds(store, place(WRITER), encode_node(role)[1])


def find_blob(store: Store, tip: Oid, path: str) -> ObjectID:
    """Return the file of a commit at *path*."""
    found: ObjectID = commits_of(store, tip)[-1].tree
    for part in path.split("/"):
        tree = store.objects[found]
        assert isinstance(tree, Tree)
        found = tree[part.encode()][1]
    return found


def put_raw_commit(store: Store, content: bytes) -> Oid:
    """Write a commit of any bytes."""
    commit = Commit.from_raw_string(Commit.type_num, content)
    assert isinstance(commit, Commit)
    expected = hashlib.sha1(b"commit %d\0%s" % (len(content), content), usedforsecurity=False)
    assert add(store, commit).decode() == expected.hexdigest()
    return Oid(expected.hexdigest())


def troubles(world: World | Store, *texts: str) -> list[Finding]:
    """Verify, and return the findings."""
    return list(verify(world.store if isinstance(world, World) else world, list(texts)).troubles)


def messages(world: World | Store, *texts: str) -> list[str]:
    """Verify, and return the messages of the findings."""
    return [each.message for each in troubles(world, *texts)]
