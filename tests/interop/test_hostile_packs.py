"""Packs that unfold to gigabytes, pushed at a hub: refused in little memory, and not kept."""

import json
import os
from typing import NamedTuple

import pytest
from interop.bombs import (
    BLOB,
    COMMIT,
    OFS_DELTA,
    TREE,
    Entry,
    deep_chain,
    delta_bomb,
    large_chain,
    name_of,
    number,
    pack,
)
from interop.hub import Hub, hub
from programs import run_python

__all__ = ["hub"]

REF = "refs/threads/01J7K9M2XNPQR5VWBCDF8G3H4T"
MOST_MIB = 512

# What hooks/README.md asks the owner of a hub to give its server's processes.
LIMITED = {"GIT_ALLOC_LIMIT": f"{MOST_MIB}m"}

# A process counts the memory of the one that forked it as its own, and that of a test is large.
MEASURE = """
import json, resource, subprocess, sys
with open(sys.argv[2], "rb") as file:
    ran = subprocess.run(["git", "receive-pack", sys.argv[1]], stdin=file, capture_output=True)
told = (ran.stdout + ran.stderr).decode(errors="replace")
print(json.dumps([told, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024]))
"""


class Told(NamedTuple):
    """What a hub said to a push, and the most memory that a process of it took."""

    text: str
    memory_mib: int

    @property
    def errors(self) -> list[str]:
        """The lines that say why it was refused."""
        lines = self.text.replace("\0", "\n").splitlines()
        return [line for line in lines if "fatal: " in line or "error: " in line]


def send(hub: Hub, tip: bytes, packed: bytes) -> Told:
    """Push a pack, and a thread at *tip*, as a client that is no git."""
    update = b"0" * 40 + b" " + tip.hex().encode() + b" " + REF.encode() + b"\0report-status"
    body = hub.place / "body"
    body.write_bytes(b"%04x" % (len(update) + 4) + update + b"0000" + packed)
    told = run_python("-c", MEASURE, hub.path, body, env={**os.environ, **LIMITED})
    return Told(*json.loads(told))


def check_refused(hub: Hub, told: Told) -> None:
    """Check that the hub refused in little memory, in lines, and has kept nothing."""
    assert hub.refs() == {}
    assert f"ng {REF}" in told.text
    assert told.errors, told.text
    assert "Traceback" not in told.text
    assert told.memory_mib < MOST_MIB
    assert [path for path in (hub.path / "objects").rglob("*") if path.is_file()] == []


COMMITTED = b"author a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\n"
EMPTY_TREE = name_of("tree", b"")


def commit_of(tree: bytes) -> bytes:
    """Return a commit of a tree."""
    return b"tree " + tree.hex().encode() + b"\n" + COMMITTED


def deep_commit(depth: int) -> tuple[bytes, bytes]:
    """Return a commit that so many deltas make, and the pack that holds it."""
    first = commit_of(EMPTY_TREE) + b"%08d" % 0
    entries = [Entry(TREE, b""), Entry(COMMIT, first)]
    keep = bytes([0x90, len(first) - 8])  # copy all but the last eight bytes
    for at in range(1, depth + 1):
        sizes = number(len(first)) * 2
        entries.append(Entry(OFS_DELTA, sizes + keep + b"\x08%08d" % at, 1))
    return name_of("commit", first[:-8] + b"%08d" % depth), pack(entries)


def wide_tree(entries: int) -> tuple[bytes, bytes]:
    """Return a commit whose tree has so many entries, and its pack."""
    blob = name_of("blob", b"")
    tree = b"".join(b"100644 %08d\0" % at + blob for at in range(entries))
    commit = commit_of(name_of("tree", tree))
    packed = pack([Entry(BLOB, b""), Entry(TREE, tree), Entry(COMMIT, commit)])
    return name_of("commit", commit), packed


def tree_of_trees(levels: int, width: int = 10) -> tuple[bytes, bytes]:
    """Return a commit with a tree of *width* to the power of *levels* paths, and its pack."""
    entries, below, mode = [Entry(BLOB, b"")], name_of("blob", b""), b"100644"
    for _level in range(levels):
        tree = b"".join(mode + b" %d\0" % at + below for at in range(width))
        entries.append(Entry(TREE, tree))
        below, mode = name_of("tree", tree), b"40000"
    # Where a thread has its nodes: they are all read.
    top = b"40000 nodes\0" + below
    commit = commit_of(name_of("tree", top))
    return name_of("commit", commit), pack([*entries, Entry(TREE, top), Entry(COMMIT, commit)])


PACKS = {
    "a delta of 4 GiB": delta_bomb(),
    "a chain of 12 objects of 31 MiB": large_chain(12),
    "a chain of 20,000 deltas": deep_chain(20_000),
    "4 billion objects": pack([], count=2**32 - 1),
    "a blob of 5 GiB": pack([Entry(BLOB, b"\0" * 1000, claimed=5 * 1024**3)]),
}


@pytest.mark.parametrize("packed", PACKS.values(), ids=PACKS.keys())
def test_pack_that_unfolds_to_gigabytes_is_refused_in_little(hub: Hub, packed: bytes) -> None:
    check_refused(hub, send(hub, b"\x11" * 20, packed))


THREADS = {
    "a commit made by 20,000 deltas": deep_commit(20_000),
    "a commit made by 60 deltas": deep_commit(60),
    "a tree of 150,000 entries": wide_tree(150_000),
    "trees of 10 to the 40 paths": tree_of_trees(40),
    "5,000 trees in each other": tree_of_trees(5_000, width=1),
}


@pytest.mark.parametrize("thread", THREADS.values(), ids=THREADS.keys())
def test_thread_of_endless_depth_or_width_is_refused_in_little(
    hub: Hub, thread: tuple[bytes, bytes]
) -> None:
    check_refused(hub, send(hub, *thread))
