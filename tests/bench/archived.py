"""Write 100,000s of threads in a minute, as one pack and one packed-refs file.

Each thread is as `uwf thread start` and `uwf thread kill` would have made it, with a StartNode of
its own. Their workflow is in no registry, as if all the threads had been fetched.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Mapping
from io import BufferedRandom
from typing import NamedTuple, Self

from bench.world import build_nodes
from dulwich.pack import write_pack_index

from uwf_git.model.builtin import AGENT_CONFIG, BUILTIN_NODES, START, reference
from uwf_git.model.event_folds import Cause, describe_event, describe_start
from uwf_git.model.event_rules import apply_event, begin_thread
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.model.workflow import END as END_OF_GRAPH
from uwf_git.model.workflow import START as START_OF_GRAPH
from uwf_git.model.workflow import Transition
from uwf_git.store.nodes import encode_node
from uwf_git.store.objects.commit import encode_json
from uwf_git.store.objects.pack_writer import format_entry_head
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.history import build_thread_message

_KINDS = {b"commit": 1, b"tree": 2, b"blob": 3}
_BEGIN_S = 1_700_000_000
_FILE, _FOLDER = b"100644", b"40000"
_WHO = b"bench <bench@uwf>"
_NAME = "crowd"

_Entries = dict[bytes, tuple[bytes, bytes]]
"""The entries of a tree: mode and binary object id by name."""


class Crowd(NamedTuple):
    """The threads that were made."""

    workflow: NodeHash
    oldest: NodeHash
    """The StartNode of the thread that began first."""

    middle: NodeHash
    newest: NodeHash


def add_crowd(store: Store, *, size: int, is_active: bool = False) -> Crowd:
    """Add *size* threads to *store*, which must have no packed refs yet.

    They have been killed, or if *is_active* only begun.
    """
    prefix = ACTIVE if is_active else ARCHIVE
    graph = {
        START_OF_GRAPH: (Transition("worker", None),),
        "worker": (Transition(END_OF_GRAPH, None),),
    }
    workflow, closure = build_nodes(_NAME, graph)
    agent = build_node(AGENT_CONFIG, {"command": "true"}, timestamp=0)
    shared = {node.hash: node for node in (workflow, *closure, agent, *BUILTIN_NODES)}
    starts: list[NodeHash] = []
    refs: list[str] = []
    with _Pack(os.path.join(store.path, "objects", "pack")) as pack:
        writer = _Writer(pack, workflow.hash, agent.hash, shared)
        for number in range(size):
            thread = ThreadId(f"01H{number:023}")
            start, *tips = writer.add_thread(thread, number)
            starts.append(start)
            refs.append(f"{tips[0 if is_active else 1]} {prefix}{thread}\n")
    with open(os.path.join(store.path, "packed-refs"), "w", encoding="ascii") as file:
        file.write("# pack-refs with: peeled fully-peeled sorted \n")
        file.writelines(refs)
    return Crowd(workflow.hash, starts[0], starts[size // 2], starts[-1])


class _Writer:
    """Writes threads that differ in nothing but their prompt and the time they began."""

    def __init__(
        self, pack: "_Pack", workflow: NodeHash, agent: NodeHash, shared: Mapping[NodeHash, Node]
    ) -> None:
        self._pack = pack
        self._workflow = workflow
        self._binding = {"worker": agent}
        self._leaves: dict[str, _Entries] = {}
        for node in shared.values():
            self._leaf(node.hash).update([self._node(node)])
        self._outer: dict[str, _Entries] = {}
        for place, leaf in self._leaves.items():
            self._outer.setdefault(place[0], {})[place[1].encode()] = self._tree(leaf)
        self._nodes = {first.encode(): self._tree(inner) for first, inner in self._outer.items()}

    def add_thread(self, thread: ThreadId, number: int) -> tuple[NodeHash, str, str]:
        """Write a thread that began and was killed; return its StartNode and both commits."""
        time_s = _BEGIN_S + number
        payload = {
            "workflow": reference(self._workflow),
            "prompt": f"Do task {number}.",
            "agentBinding": {role: reference(each) for role, each in self._binding.items()},
        }
        node = build_node(START, payload, timestamp=time_s * 1000)
        name, blob = self._node(node)
        first, second = node.hash[0], node.hash[1]
        leaf = self._tree({**self._leaves.get(first + second, {}), name: blob})
        inner = self._tree({**self._outer.get(first, {}), second.encode(): leaf})
        nodes = self._tree({**self._nodes, first.encode(): inner})
        begun = begin_thread(thread, node, _NAME, initial_state=None)
        now = self._pack.add(b"blob", encode_json(begun.state.as_document()))
        files = {b"start.json": blob, b"head.json": blob, b"now.json": (_FILE, now)}
        _mode, tree = self._tree({**files, b"nodes": nodes})
        start = build_thread_message(begun.record, describe_start(node.payload["prompt"]))
        began = self._commit(tree, b"", start, time_s)
        killed = apply_event(begun, "kill", Cause()).record
        end = build_thread_message(killed, describe_event(begun, "kill", Cause()))
        parent = b"parent " + began.hex().encode() + b"\n"
        return node.hash, began.hex(), self._commit(tree, parent, end, time_s).hex()

    def _leaf(self, name: NodeHash) -> _Entries:
        return self._leaves.setdefault(name[:2], {})

    def _node(self, node: Node) -> tuple[bytes, tuple[bytes, bytes]]:
        suffix, content = encode_node(node)
        return (node.hash[2:] + suffix).encode(), (_FILE, self._pack.add(b"blob", content))

    def _tree(self, entries: _Entries) -> tuple[bytes, bytes]:
        # Bytewise is git's order too: no file here has a name that a folder's begins with.
        lines = (b"%s %s\0%s" % (mode, name, oid) for name, (mode, oid) in sorted(entries.items()))
        return _FOLDER, self._pack.add(b"tree", b"".join(lines))

    def _commit(self, tree: bytes, parent: bytes, message: bytes, time_s: int) -> bytes:
        who = b"%s %d +0000" % (_WHO, time_s)
        head = b"tree %s\n%sauthor %s\ncommitter %s\n\n" % (tree.hex().encode(), parent, who, who)
        return self._pack.add(b"commit", head + message)


class _Pack:
    """A pack that is written as it grows; its index comes at the end."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = os.path.join(folder, "crowd.tmp")
        self._file: BufferedRandom
        self._entries: dict[bytes, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        self._file = open(self._path, "w+b")
        self._file.write(b"PACK" + struct.pack(">LL", 2, 0))
        return self

    def __exit__(self, *_raised: object) -> None:
        self._file.seek(8)
        self._file.write(struct.pack(">L", len(self._entries)))
        self._file.seek(0)
        checksum = hashlib.file_digest(self._file, "sha1").digest()
        self._file.write(checksum)
        self._file.close()
        name = os.path.join(self._folder, f"pack-{checksum.hex()}")
        entries = sorted((oid, at, crc) for oid, (at, crc) in self._entries.items())
        with open(name + ".idx", "wb") as index:
            write_pack_index(index, entries, checksum)
        os.rename(self._path, name + ".pack")

    def add(self, kind: bytes, content: bytes) -> bytes:
        """Add an object if it is not there yet; return its binary id."""
        oid = hashlib.sha1(b"%s %d\0%s" % (kind, len(content), content)).digest()
        if oid not in self._entries:
            written = format_entry_head(_KINDS[kind], len(content)) + zlib.compress(content, 1)
            self._entries[oid] = (self._file.tell(), zlib.crc32(written))
            self._file.write(written)
        return oid
