"""Nodes in the whole store: found by a hash through all refs, and compared folder by folder."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from dulwich.objects import ObjectID, Tree

from uwf_git.errors import Conflict, Refused, StoreDamaged, name_some
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.names import NodeHash, Oid, is_node_hash
from uwf_git.model.node import Node
from uwf_git.model.text import quote_path
from uwf_git.model.thread import FORMAT
from uwf_git.store.locks import PACKED_REFS
from uwf_git.store.nodes import (
    JSON_SUFFIX,
    NODES,
    TEXT_SUFFIX,
    TREE_MODE,
    NodeCollision,
    add_nodes,
    decode_node,
    find_names,
    find_node,
)
from uwf_git.store.objects.commit import (
    CommitDraft,
    CommitView,
    Signing,
    build_message,
    find_entry,
    read_commit,
    write_commit,
)
from uwf_git.store.objects.objects import ObjectStore, damaged_object, get_content
from uwf_git.store.refs import PackedRefs, list_packed_refs, read_loose_refs
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.workflows import WORKFLOWS

if TYPE_CHECKING:
    from uwf_git.store.index import NodeIndex

# refs/cas/nodes: nodes that were put by hand, kept from git's gc by a tree (FORMAT.md, "Refs").

CAS = "refs/cas/"
NODES_REF = f"{CAS}nodes"

_MOST_TRIES = 20
_GO_BACK = (
    "`git -C {path} log {ref}` lists the puts; `git -C {path} update-ref {ref} COMMIT` goes back "
    "to one before the damage, and what came after it is put again"
)


def put_nodes(store: Store, nodes: Iterable[Node], signing: Signing) -> bool:
    """Add *nodes* and the built-in schemas to refs/cas/nodes; return whether any was new."""
    added = [*BUILTIN.values(), *nodes]
    for _try in range(_MOST_TRIES):
        seen = store.refs.find(NODES_REF)
        parent = None if seen is None else read_commit(store.objects, seen)
        folder = None if parent is None else find_entry(store.objects, parent, NODES)
        try:
            growth = add_nodes(store.objects, folder, added)
        except StoreDamaged as error:
            if not isinstance(error, NodeCollision):
                error.hint = _GO_BACK.format(path=quote_path(store.path), ref=NODES_REF)
            raise
        if growth.nodes == folder:
            return False
        tree = Tree()
        tree[NODES.encode()] = (TREE_MODE, growth.nodes)
        written = {each.id for each in growth.objects}
        new = [name for name, blob in growth.blobs.items() if blob in written]
        draft = CommitDraft(
            tree=tree,
            parents=() if parent is None else (parent,),
            message=build_put_message(new),
            objects=growth.objects,
        )
        commit = write_commit(store.objects, draft, signing)
        if store.refs.advance(NODES_REF, seen=seen, to=commit):
            return True
    raise Conflict(
        "other processes kept putting nodes at the same time", code="nodes-moved", hint="try again"
    )


def build_put_message(new: Iterable[NodeHash]) -> bytes:
    names = " ".join(sorted(name for name in new if name not in BUILTIN))
    trailers = [("Uwf-Event", "put"), ("Uwf-Format", str(FORMAT))]
    return build_message("cas", f"put {names or 'the built-in schemas'}", trailers=trailers)


def list_nodes(store: Store) -> Iterator[NodeHash]:
    """List the nodes at refs/cas/nodes, the built-in schemas included."""
    seen = store.refs.find(NODES_REF)
    if seen is not None:
        folder = find_entry(store.objects, read_commit(store.objects, seen), NODES)
        yield from find_names(store.objects, folder, "")


# Node roots: commits whose trees keep nodes, and finding a node in one.
#
# The tip of a thread, an archive or refs/cas/nodes keeps all its nodes; of a workflow each
# version keeps its own. A damaged root is skipped, so that it does not hide the nodes of others.


class NodeRoot(NamedTuple):
    store: Store
    ref: str
    commit: CommitView

    def find(
        self, name: NodeHash, decode: Callable[[NodeHash, bytes], Node] = decode_node
    ) -> Node | None:
        return find_node(self.store.objects, self._folder(), name, decode)

    def lists(self, name: NodeHash) -> bool:
        return any(True for _name in self.list_readable(name))

    def list_readable(self, prefix: str) -> Iterator[NodeHash]:
        """List the names that begin with *prefix* up to damage; their blobs are not read."""
        with suppress(StoreDamaged):
            yield from find_names(self.store.objects, self._folder(), prefix)

    def _folder(self) -> ObjectID | None:
        with suppress(StoreDamaged):
            return find_entry(self.store.objects, self.commit, NODES)
        # The tree is damaged; `uwf verify` reports it.
        return None


def open_root(store: Store, ref: str) -> NodeRoot | None:
    return next(open_roots(store, ref), None)


def open_roots(store: Store, ref: str) -> Iterator[NodeRoot]:
    """Yield the roots of *ref*, newest first, up to the first root that cannot be read."""
    with suppress(StoreDamaged):
        for commit in walk_root(store, ref, store.refs.find(ref)):
            yield NodeRoot(store, ref, commit)


def walk_root(
    store: Store, ref: str, oid: Oid | None, *, until: Oid | None = None
) -> Iterator[CommitView]:
    """Yield the tip *oid* of *ref*; of a workflow also its older versions, back to *until*."""
    while oid is not None and oid != until:
        commit = read_commit(store.objects, oid)
        yield commit
        oid = next(iter(commit.parents), None) if ref.startswith(WORKFLOWS) else None


def nodes_at(objects: ObjectStore, oid: Oid) -> bytes | None:
    """Return the 20 bytes of the id of the `nodes/` of a commit; None if it cannot be read."""
    with suppress(StoreDamaged):
        nodes = find_entry(objects, read_commit(objects, oid), NODES)
        return None if nodes is None else bytes.fromhex(nodes.decode())
    return None


# Root refs: the refs that keep nodes, and reading many of them at once.
#
# Read loose refs before packed ones: a ref that git packs in between is then seen twice, not
# missed. A ref that holds no object id is left out. Source: gitrepository-layout(5),
# git-pack-refs(1).

_BELOW = (WORKFLOWS, ACTIVE, ARCHIVE)


def list_root_refs(store: Store) -> Iterator[str]:
    """List the refs that keep nodes, in the order in which they are searched."""
    yield NODES_REF
    for prefix in _BELOW:
        # The newest thread has the greatest id (a ULID).
        for name in reversed(store.refs.names(prefix)):
            yield prefix + name


def list_loose_roots(store: Store) -> Iterator[tuple[str, Oid]]:
    """List the loose root refs and their values, in the order of `list_root_refs`."""
    for prefix in (CAS, *_BELOW):
        for name, oid in sorted(read_loose_refs(store.path, prefix).items(), reverse=True):
            if oid is not None and is_root_ref(prefix + name):
                yield prefix + name, oid


def list_packed_roots(store: Store) -> Iterator[tuple[str, Oid]]:
    """List the packed root refs and their values, the newest threads first."""
    PackedRefs(os.path.join(store.path, PACKED_REFS))
    for ref, oid in reversed(list(list_packed_refs(store.path, "refs/"))):
        if is_root_ref(ref):
            yield ref, oid


def is_root_ref(ref: str) -> bool:
    if "\0" in ref or "/../" in ref:
        return False
    return ref.startswith(_BELOW) or ref == NODES_REF


def follow(ref: str) -> tuple[str, ...]:
    """Return the refs that have the nodes of *ref*: for an active thread also its archive."""
    if ref.startswith(ACTIVE):
        return ref, ARCHIVE + ref.removeprefix(ACTIVE)
    return (ref,)


# Node lookup: find a node by the refs that the index names first, else by all root refs.


# Do not check whether each match still exists if there are more: the prefix is ambiguous anyway.
_MOST_CHECKED = 32

# How many refs stay open: a commit takes a kilobyte, and there may be hundreds of thousands.
_MOST_OPEN = 1000


class NoSuchNode(Refused):
    code = "no-such-node"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"there is no node {text} in this store",
            hint="`uwf thread show ID --full` and `uwf workflow show NAME` name nodes",
            node=text,
        )


def ambiguous_node(text: str, matches: list[NodeHash]) -> Refused:
    return Refused(
        f"{len(matches)} nodes begin with {text}: {name_some(matches)}",
        code="ambiguous-node",
        hint="give more of the hash",
        matches=matches,
    )


class NodeLookup:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._opened: dict[str, tuple[NodeRoot, ...]] = {}
        # A walk from node to node stays in one thread: search the root of the last node first.
        self._last: tuple[NodeRoot, ...] = ()
        # Types are few, and used again and again.
        self.get_type = cache(self.get)

    def find(self, name: NodeHash) -> Node | None:
        """Return the node *name*, or None; built-in nodes are always found."""
        builtin = BUILTIN.get(name)
        if builtin is not None:
            return builtin
        damage: list[StoreDamaged] = []
        node = self._find_in(self._last, name, damage) or self._find_anywhere(name, damage)
        if node is None and damage:
            raise damage[0]
        return node

    def get(self, name: NodeHash) -> Node:
        """Return the node *name* as ``find`` does."""
        node = self.find(name)
        if node is None:
            raise NoSuchNode(name)
        return node

    def resolve(self, prefix: str) -> NodeHash:
        """Return the name of the node that begins with *prefix*; a full name is not looked up."""
        if is_node_hash(prefix):
            return NodeHash(prefix)
        matches = {name for name in BUILTIN if name.startswith(prefix)}
        matches.update(self._list_names(prefix))
        if not matches:
            raise NoSuchNode(prefix)
        if len(matches) > 1:
            raise ambiguous_node(prefix, sorted(matches))
        return matches.pop()

    def roots(self) -> Iterator[NodeRoot]:
        yield from self._open(self._refs)

    @cached_property
    def _refs(self) -> list[str]:
        return list(list_root_refs(self._store))

    @cached_property
    def _index(self) -> "NodeIndex":
        # SQLite is only loaded for nodes that are not built in.
        from uwf_git.store.index import NodeIndex  # noqa: PLC0415 - start-up time

        return NodeIndex(self._store)

    def _find_anywhere(self, name: NodeHash, damage: list[StoreDamaged]) -> Node | None:
        advice = self._index.advise(name)
        node = self._find_in(self._open(advice.refs), name, damage)
        if node is not None or advice.is_all:
            return node
        # There is no index, or its ref is gone or damaged.
        node = self._find_in(self.roots(), name, damage)
        if node is not None:
            self._index.learn(name, self._last[0].ref)
        elif not damage:
            self._index.forget(name)
        return node

    def _find_in(
        self, roots: Iterable[NodeRoot], name: NodeHash, damage: list[StoreDamaged]
    ) -> Node | None:
        for root in roots:
            try:
                node = root.find(name)
            except StoreDamaged as error:
                # Another root may have it undamaged; if none has, the first error is raised.
                damage[:] = damage or [error]
                continue
            if node is not None:
                self._last = (root,)
                return node
        return None

    def _list_names(self, prefix: str) -> Iterator[NodeHash]:
        known = self._index.list_names(prefix)
        for root in self.roots() if known is None else self._open(known.refs):
            yield from root.list_readable(prefix)
        if known is not None:
            is_checked = len(known.names) <= _MOST_CHECKED
            yield from filter(self._is_kept, known.names) if is_checked else known.names

    def _is_kept(self, name: NodeHash) -> bool:
        with suppress(StoreDamaged):
            return self.find(name) is not None
        return True

    def _open(self, refs: Iterable[str]) -> Iterator[NodeRoot]:
        for ref in refs:
            roots = self._opened.get(ref)
            if roots is None:
                roots = tuple(open_roots(self._store, ref))
                if len(self._opened) < _MOST_OPEN:
                    self._opened[ref] = roots
            yield from roots


# Folders of nodes, compared: what is new below `nodes/` since another commit.
#
# Reads raw trees, goes only into folders that differ, and reads a remembered folder only once; the
# memory is bounded. A folder that cannot be read is reported once, where it came in.
# Format: FORMAT.md, "The tree of a thread commit".

RAW_FILE_MODE = b"100644"
RAW_TREE_MODE = b"40000"

TreeEntry: TypeAlias = tuple[bytes, bytes]
"""A mode as git writes it, and the 20 bytes of an object id, as in a raw tree."""

Folder: TypeAlias = Mapping[bytes, TreeEntry]

_Change: TypeAlias = tuple[TreeEntry | None, TreeEntry | None]

_ENTRY = re.compile(rb"([1-7][0-7]{4,5}) ([^\0/]+)\0(.{20})", re.DOTALL)
_ENTRIES = re.compile(rb"(?:[1-7][0-7]{4,5} [^\0/]+\0.{20})*", re.DOTALL)
# A folder of folders with names of one character: each entry has the same size.
_FAN = re.compile(rb"(?:40000 [0-9A-Z]\0.{20})+", re.DOTALL)
_FAN_STEP, _FAN_NAME, _FAN_ID = 28, 6, 8

_LEAF = re.compile(rb"([0-9A-HJKMNP-TV-Z]{11})(\.json|\.md)")
_LEVELS = (re.compile(rb"[0-9A-F]"), re.compile(rb"[0-9A-HJKMNP-TV-Z]"))

_OTHER = {JSON_SUFFIX.encode(): TEXT_SUFFIX.encode(), TEXT_SUFFIX.encode(): JSON_SUFFIX.encode()}

# An entry takes about 250 bytes, so at most 50 MB. A thread of 10,000 steps has up to 30,000.
_MOST_ENTRIES = 200_000

NodeFileChangeKind = Literal["added", "replaced", "lost", "odd", "damaged"]


def object_id(raw: bytes) -> ObjectID:
    return ObjectID(raw.hex().encode())


class NodeFileChange(NamedTuple):
    kind: NodeFileChangeKind
    path: str
    """From the top of the commit's tree."""

    blob: bytes | None = None
    """The 20 bytes of the id of the blob that is there now; None if there is no node to read."""

    name: NodeHash | None = None
    """The name of the node by its path; None if the path is not the path of a node."""

    problem: str = ""
    """What is wrong with an ``odd`` or ``damaged`` entry."""

    hint: str = ""


class NodeFolders:
    """The folders of nodes of a store, remembered once read."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._folders: dict[bytes, Folder] = {}
        self._entries = 0

    def get(self, raw: bytes) -> Folder:
        """Return the entries of the tree with the 20-byte id *raw*, in their order."""
        known = self._folders.get(raw)
        if known is None:
            known = self._read(object_id(raw))
            if self._entries > _MOST_ENTRIES:
                self._folders.clear()
                self._entries = 0
            self._folders[raw] = known
            self._entries += len(known)
        return known

    def forget(self, raw: bytes) -> None:
        """Forget a folder that was replaced, or that is read only once."""
        self._entries -= len(self._folders.pop(raw, ()))

    def find(self, nodes: bytes, name: NodeHash) -> bytes | None:
        folder = self.get(nodes)
        for part in (name[0], name[1]):
            mode, raw = folder.get(part.encode(), (b"", b""))
            if mode != RAW_TREE_MODE:
                return None
            folder = self.get(raw)
        stem = name[2:].encode()
        return next((folder[stem + each][1] for each in _OTHER if stem + each in folder), None)

    def compare(self, old: bytes | None, new: bytes, *, keep_old: bool) -> Iterator[NodeFileChange]:
        """Yield the differences from folder *old* (None is empty) to *new*, in order of paths.

        Unless *keep_old*, forget the old folders that differ.
        """
        yield from self._compare(("nodes", ""), old, new, keep_old=keep_old)

    def _compare(
        self, place: tuple[str, str], old: bytes | None, new: bytes | None, *, keep_old: bool
    ) -> Iterator[NodeFileChange]:
        path, name = place
        try:
            now = {} if new is None else self.get(new)
        except StoreDamaged as error:
            yield NodeFileChange("damaged", path, problem=error.message, hint=error.hint or "")
            return
        before = self._get_if_whole(old)
        for key in _differing(before, now):
            change = (before.get(key), now.get(key))
            inner = (f"{path}/{_shown(key)}", name)
            if len(name) < len(_LEVELS):
                yield from self._compare_folder(inner, key, change, keep_old=keep_old)
            else:
                yield from _compare_file(inner, key, change, now)
        if old is not None and not keep_old:
            self.forget(old)

    def _get_if_whole(self, raw: bytes | None) -> Folder:
        with suppress(StoreDamaged):
            return {} if raw is None else self.get(raw)
        # Reported where it came in; everything that replaced it is new.
        return {}

    def _compare_folder(
        self, place: tuple[str, str], key: bytes, change: _Change, *, keep_old: bool
    ) -> Iterator[NodeFileChange]:
        path, name = place
        before, now = change
        if now is not None and _LEVELS[len(name)].fullmatch(key) is None:
            yield NodeFileChange("odd", path, problem="does not belong there")
            return
        if now is not None and now[0] != RAW_TREE_MODE:
            problem = f"is not a folder: its mode is {now[0].decode()}"
            yield NodeFileChange("odd", path, problem=problem)
            return
        old = before[1] if before is not None and before[0] == RAW_TREE_MODE else None
        inner = (path, name + _shown(key))
        yield from self._compare(inner, old, None if now is None else now[1], keep_old=keep_old)

    def _read(self, oid: ObjectID) -> Folder:
        content = get_content(self._objects, oid, Tree)
        if _FAN.fullmatch(content) is not None:
            fan = _Fan(content)
            if bytes(sorted(set(fan.names))) == fan.names:
                return fan
        found = _ENTRY.findall(content)
        folder = {name: (mode, raw) for mode, name, raw in found}
        if _ENTRIES.fullmatch(content) is None or len(folder) != len(found):
            raise damaged_object(oid, "is not a tree that git would write")
        names = list(folder)
        if names != sorted(names) and names != sorted(names, key=lambda each: _order(each, folder)):
            raise damaged_object(oid, "is a tree out of order, in which git finds nothing")
        return folder


def _compare_file(
    place: tuple[str, str], key: bytes, change: _Change, now: Folder
) -> Iterator[NodeFileChange]:
    path, start = place
    match = _LEAF.fullmatch(key)
    before, after = change
    name = None if match is None else NodeHash(start + match[1].decode())
    if after is None:
        if name is not None:
            yield NodeFileChange("lost", path, name=name)
    elif match is None or name is None:
        yield NodeFileChange("odd", path, problem="does not belong there")
    elif after[0] != RAW_FILE_MODE:
        problem = f"has mode {after[0].decode()}, and a node's file has {RAW_FILE_MODE.decode()}"
        yield NodeFileChange("odd", path, name=name, problem=problem)
    else:
        twin = match[1] + _OTHER[match[2]]
        if twin in now:
            problem = f"is there a second time, as {twin.decode()}"
            yield NodeFileChange("odd", path, name=name, problem=problem)
        is_new = before is None or before[0] != RAW_FILE_MODE
        yield NodeFileChange("added" if is_new else "replaced", path, after[1], name)


def _order(name: bytes, folder: Folder) -> bytes:
    """Return the key by which git sorts the entries of a tree."""
    return name + b"/" if folder[name][0] == RAW_TREE_MODE else name


def _shown(key: bytes) -> str:
    return key.decode(errors="backslashreplace")


class _Fan(Mapping[bytes, TreeEntry]):
    """A folder of one-character folders as raw bytes: most commits change one of 32 entries."""

    __slots__ = ("content", "names")

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.names = content[_FAN_NAME::_FAN_STEP]

    def __getitem__(self, key: bytes) -> TreeEntry:
        at = self.names.find(key) if len(key) == 1 else -1
        if at < 0:
            raise KeyError(key)
        start = at * _FAN_STEP + _FAN_ID
        return RAW_TREE_MODE, self.content[start : start + 20]

    def __iter__(self) -> Iterator[bytes]:
        return (self.names[at : at + 1] for at in range(len(self.names)))

    def __len__(self) -> int:
        return len(self.names)


def _differing(before: Folder, now: Folder) -> list[bytes]:
    if isinstance(before, _Fan) and isinstance(now, _Fan) and before.names == now.names:
        return _differing_in_fans(before.content, now.content, now.names)
    if not before:
        return list(now)
    found = [key for key, entry in now.items() if before.get(key) != entry]
    gone = [key for key in before if key not in now]
    return sorted(found + gone) if gone else found


def _differing_in_fans(before: bytes, now: bytes, names: bytes) -> list[bytes]:
    """Return the names whose ids differ; XOR as one number finds the first difference fast."""
    different = int.from_bytes(before, "big") ^ int.from_bytes(now, "big")
    first = (len(now) - (different.bit_length() + 7) // 8) // _FAN_STEP
    return [
        names[at : at + 1]
        for at in range(first, len(names))
        if before[at * _FAN_STEP : (at + 1) * _FAN_STEP]
        != now[at * _FAN_STEP : (at + 1) * _FAN_STEP]
    ]
