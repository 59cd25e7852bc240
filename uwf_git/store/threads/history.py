"""The commits of a thread, its steps, the threads around it, and preserved work."""

import os
import re
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING

from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import START, STEP, find_reference
from uwf_git.model.names import TIME_SYMBOLS, NodeHash, ThreadId, is_thread_id, parse_thread_prefix
from uwf_git.model.node import Node
from uwf_git.store.disk.durable import FileMemory, read_if_there, remove_file, replace_file
from uwf_git.store.objects.commit import damaged_commit
from uwf_git.store.oid import Oid, is_oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head, list_threads
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

if TYPE_CHECKING:
    from uwf_git.store.git.program import Kept

# The work directory and the log of each thread, which stay on this machine.
#
# A work directory is a small file below `<git dir>/uwf-workdirs/`: as a setting in git config,
# every start would rewrite a file that every start reads, and 200 starting threads would wait for
# its lock.

SETTINGS = "git-settings"
"""The folder of the user's own files about a store that has the settings of each thread."""

STAYS = "worktrees-that-stay"
"""The folder of notes on worktrees of ended branches, below ``Store.local_path``."""

UNRECORDED, SLOW_TO_RECORD = "files-not-recorded", "files-slow-to-record"
"""The folder of notes on threads whose files are not recorded, below ``Store.local_path``."""


def note_once(store: Store, folder: str, thread: ThreadId, content: bytes) -> None:
    """Note in *folder*, for a warning, what is wrong with *thread*, unless it is noted already."""
    path = store.local_path(folder, thread)
    if not os.path.lexists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        replace_file(path, content)


def take_notes(store: Store, folder: str) -> dict[ThreadId, bytes]:
    path = store.local_path(folder)
    names = sorted(filter(is_thread_id, os.listdir(path))) if os.path.isdir(path) else []
    told = {ThreadId(name): read_if_there(os.path.join(path, name)) for name in names}
    found = {thread: content for thread, content in told.items() if content}
    for thread in found:
        # The empty file says that it is known.
        replace_file(os.path.join(path, thread), b"")
    return found


_FOLDER = "uwf-workdirs"
_WORKDIRS: FileMemory[str | None] = FileMemory(256)


def set_workdir(store: Store, thread: ThreadId, path: str) -> None:
    replace_file(_file(store, thread), os.fsencode(path) + b"\n")


def give_workdir(store: Store, thread: ThreadId, path: str, *, known: "Kept | None" = None) -> None:
    """Record that the agents of *thread* run in *path*, before any agent has run.

    The settings that git has there now are kept: an agent may change them. Settings that are
    *known* from before other agents ran there are kept instead.
    """
    kept = settings_file(store, thread)
    if kept is not None:
        from uwf_git.store.git.program import NOTHING_KEPT, keep_settings  # noqa: PLC0415 (only a start needs it)

        keep_settings(kept, path, known=known or NOTHING_KEPT)
    set_workdir(store, thread, path)


def settings_file(store: Store, thread: ThreadId) -> str | None:
    if store.trust_file is None:
        return None
    return os.path.join(os.path.dirname(store.trust_file), SETTINGS, thread)


def find_workdir(store: Store, thread: ThreadId) -> str | None:
    """Return the work directory of *thread*; None if this machine has no record of it."""
    return _WORKDIRS.read(_file(store, thread), _read_workdir)


def _read_workdir(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read().removesuffix(b"\n"))
    except FileNotFoundError:
        return None


def forget_workdir(store: Store, thread: ThreadId) -> None:
    """Remove the record of the work directory of *thread*, if no files are recorded there."""
    if not has_files(store, thread):
        remove_file(_file(store, thread))


def forget_settings(store: Store, thread: ThreadId) -> None:
    """Remove what is kept of the settings that git had when *thread* began."""
    if (path := settings_file(store, thread)) is not None:
        remove_file(path)


def workdirs_folder(store: Store) -> str:
    return os.path.join(store.path, _FOLDER)


def _file(store: Store, thread: ThreadId) -> str:
    return os.path.join(workdirs_folder(store), thread)


LOGS = "logs"
LOG_SUFFIX = ".log"


def log_path(store: Store, thread: ThreadId) -> str:
    return store.local_path(LOGS, thread + LOG_SUFFIX)


def forget_log(store: Store, thread: ThreadId) -> None:
    remove_file(log_path(store, thread))


# What the chain of a thread's files needs here: git's index of it, and how many bytes it has.

FILES = "files"
INDEX_SUFFIX = ".index"
_SIZE_SUFFIX = ".size"


def files_index(store: Store, thread: ThreadId) -> str:
    return store.local_path(FILES, thread + INDEX_SUFFIX)


def files_size(store: Store, thread: ThreadId) -> str:
    return store.local_path(FILES, thread + _SIZE_SUFFIX)


def has_files(store: Store, thread: ThreadId) -> bool:
    return os.path.exists(files_size(store, thread))


def forget_files(store: Store, thread: ThreadId) -> None:
    for path in (
        files_index(store, thread),
        files_size(store, thread),
        store.local_path(UNRECORDED, thread),
        store.local_path(SLOW_TO_RECORD, thread),
    ):
        remove_file(path)


# Walk the commits of a thread, newest first, along first parents.


def walk_history(store: Store, tip: Oid, *, through_forks: bool = False) -> Iterator[Snapshot]:
    """Yield the snapshots of a thread from *tip* back to its ``start`` or ``fork`` commit.

    With *through_forks* the walk goes on into the thread that was forked.
    """
    oid: Oid | None = tip
    while oid is not None:
        snapshot = read_snapshot(store, oid)
        yield snapshot
        event = snapshot.record.event
        if event == "start" or (event == "fork" and not through_forks):
            return
        oid = next(iter(snapshot.commit.parents), None)


# The threads of which a branch is one, as far as they are in this store.


def read_trunk(store: Store, snapshot: Snapshot) -> Snapshot | None:
    trunk = snapshot.get_trunk()
    head = None if trunk is None else find_head(store, trunk)
    return None if head is None else read_snapshot(store, head.commit)


def read_root(store: Store, snapshot: Snapshot) -> Snapshot:
    """Read the outermost thread here that has this thread as a branch, or else *snapshot*."""
    while (trunk := read_trunk(store, snapshot)) is not None:
        snapshot = trunk
    return snapshot


def find_settings(store: Store, thread: ThreadId) -> "Kept":
    """Return the settings of git that the project had when the outermost thread began."""
    from uwf_git.store.git.program import read_settings  # noqa: PLC0415 (few threads start git)

    head = find_head(store, thread)
    if head is not None:
        thread = read_root(store, read_snapshot(store, head.commit)).record.thread
    return read_settings(settings_file(store, thread))


# The steps of a thread at one commit, read when they are accessed.
#
# The chain leads from each step to the one before it, so the newest is read without the rest, and
# an older one with those after it. Names are remembered, 80 bytes each; nodes up to a limit in
# bytes. The chain of a branch may go on with the steps before it: those of the thread that split.

MOST_BYTES = 16 * 1024 * 1024
"""How much is remembered of the nodes that were read: some 7,000 small steps."""

# What a node takes in memory beside its text, about.
_NODE_BYTES = 2000


class StepChain:
    """The StepNodes of a thread at one commit, by their place: 0 is the first step.

    For a branch, *before* has how many steps the thread had that split, then the thread around that
    thread, and so on: so many of these steps are the first. Several Python threads may read at
    once.
    """

    def __init__(self, snapshot: Snapshot, before: Sequence[int] = ()) -> None:
        self._snapshot = snapshot
        counts = (snapshot.record.depth, *before)
        self._length = sum(counts)
        self._starts = list(accumulate(counts[:-1]))
        """How many steps are newer than each StartNode of a branch."""

        self._names: list[NodeHash] = []
        """Newest first, as far as the chain was followed."""

        self._marked = snapshot.record.node
        self._nodes: OrderedDict[int, tuple[Node, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return self._length

    def get(self, place: int) -> Node:
        back = self._length - 1 - place
        with self._lock:
            if not self._names:
                self._names.append(self._skip_starts(self._snapshot.record.node, newer=0))
            while len(self._names) <= back:
                self._read(len(self._names) - 1)
            return self._read(back)

    def _read(self, back: int) -> Node:
        """Return the step that is *back* steps before the newest, and learn the name before it."""
        if back in self._nodes:
            return self._nodes[back][0]
        name = self._names[back]
        node = self._snapshot.get_node(name)
        is_step = node.type == STEP and isinstance(node.payload, dict)
        previous = find_reference(node.payload.get("prev")) if is_step else None
        if previous is None:
            raise self._broken(name)
        if len(self._names) == back + 1:
            self._follow(previous)
        self._keep(back, node)
        return node

    def _follow(self, previous: NodeHash) -> None:
        """Remember the next older name, unless a forged chain is a cycle (Brent's algorithm)."""
        if previous == self._marked:
            raise self._broken(previous)
        self._names.append(self._skip_starts(previous, newer=len(self._names)))
        if len(self._names).bit_count() == 1:
            self._marked = previous

    def _skip_starts(self, name: NodeHash, *, newer: int) -> NodeHash:
        """Return the step that *name*, with so many *newer* steps, stands for.

        The StartNode of a branch stands for the head of the thread that split.
        """
        for _start in range(self._starts.count(newer)):
            node = self._snapshot.get_node(name)
            is_start = node.type == START and isinstance(node.payload, dict)
            parent = find_reference(node.payload.get("parent")) if is_start else None
            if parent is None:
                raise self._broken(name)
            name = parent
        return name

    def _keep(self, back: int, node: Node) -> None:
        weight = len(repr(node.payload)) + _NODE_BYTES
        self._nodes[back] = node, weight
        self._bytes += weight
        while self._bytes > MOST_BYTES:
            self._bytes -= self._nodes.popitem(last=False)[1][1]

    def _broken(self, name: NodeHash) -> StoreDamaged:
        oid = self._snapshot.commit.oid
        return damaged_commit(oid, f"has {name} in its chain, which is not a step")


# Preserved commits: finished work whose thread had moved on, behind refs/uwf/kept/.
#
# The refs `<thread>/<commit>` protect them from gc; no push takes them along. Format: FORMAT.md,
# "Refs".

KEPT = "refs/uwf/kept/"


def preserve_commit(store: Store, thread: ThreadId, commit: Oid) -> None:
    store.refs.create(_ref(thread, commit), commit)


def list_preserved(store: Store, thread: ThreadId) -> list[Oid]:
    return [Oid(name) for name in store.refs.names(f"{KEPT}{thread}/") if is_oid(name)]


def list_preserved_threads(store: Store) -> list[ThreadId]:
    # names() lists packed refs in subfolders, but loose ones only directly below the prefix.
    found = {name.partition("/")[0] for name in store.refs.names(KEPT) if "/" in name}
    with suppress(FileNotFoundError):
        found.update(os.listdir(os.path.join(store.path, KEPT)))
    return sorted(ThreadId(name) for name in found if is_thread_id(name))


def release(store: Store, thread: ThreadId, commit: Oid) -> None:
    """Remove the ref that preserves *commit*, if there is any: a thread reaches the commit now."""
    if store.refs.find(_ref(thread, commit)) is not None:
        store.refs.delete(_ref(thread, commit), seen=commit)


def _ref(thread: ThreadId, commit: Oid) -> str:
    return f"{KEPT}{thread}/{commit}"


# How people name threads: short ids that can be copied, and `@`, the newest.

_MOST_DESCRIBED = 10
_LONGEST_TASK = 60
_NEWEST = re.compile("@([1-9][0-9]{0,8})?")


class ShortIds:
    """The shortest unique beginning of each id, at least its time: new threads change none."""

    def __init__(self, threads: Iterable[str]) -> None:
        self._all = sorted(threads)

    def __contains__(self, thread: str) -> bool:
        place = bisect_left(self._all, thread)
        return place < len(self._all) and self._all[place] == thread

    def shorten(self, thread: str) -> str:
        """Return the short id of *thread*, which need not be among these ids."""
        place = bisect_left(self._all, thread)
        around = self._all[max(place - 1, 0) : place + 2]
        alike = max((_count_alike(thread, each) for each in around if each != thread), default=0)
        return thread[: max(alike + 1, TIME_SYMBOLS)]


def read_short_ids(store: Store, not_begun: Iterable[str] = ()) -> ShortIds:
    return ShortIds({*_list_all(store), *not_begun})


def find_newest(store: Store, text: str) -> ThreadId | None:
    """Return the thread that ``@`` (newest) or ``@2`` names, without branches of threads here."""
    named = _NEWEST.fullmatch(text)
    if named is None:
        return None
    left = int(named[1] or 1)
    for thread in _walk_newest(store):
        left -= 1
        if not left:
            return thread
    return None


def list_not_begun(store: Store, text: str) -> dict[ThreadId, ThreadId]:
    """Return the branches, and their threads, whose ids begin so and that have not begun here."""
    prefix = "" if text.startswith("@") else parse_thread_prefix(text)
    found: dict[ThreadId, ThreadId] = {}
    for thread in list_threads(store, archived=False) if prefix else ():
        snapshot = _read(store, thread)
        # A pause keeps the branches.
        if snapshot is None or snapshot.record.status not in {"split", "paused"}:
            continue
        with suppress(StoreDamaged):
            split = snapshot.get_present().split
            for child in () if split is None else split.children:
                if child.thread.startswith(prefix) and find_head(store, child.thread) is None:
                    found[child.thread] = thread
    return found


def describe_threads(store: Store, threads: Sequence[ThreadId]) -> list[str]:
    """Return a line for each of *threads*, as far as people read: short id, status, task."""
    short = read_short_ids(store)
    lines = []
    for thread in threads[:_MOST_DESCRIBED]:
        line = short.shorten(thread)
        snapshot = _read(store, thread)
        if snapshot is not None:
            line += f"  {snapshot.record.status:9}  {_find_task(snapshot)}"
        lines.append(line)
    left = len(threads) - _MOST_DESCRIBED
    return [*lines, f"and {left} more"] if left > 0 else lines


def _walk_newest(store: Store) -> Iterator[ThreadId]:
    for thread in sorted(_list_all(store), reverse=True):
        snapshot = _read(store, thread)
        trunk = None if snapshot is None else snapshot.get_trunk()
        if trunk is None or find_head(store, trunk) is None:
            yield thread


def _list_all(store: Store) -> set[ThreadId]:
    return {*list_threads(store, archived=False), *list_threads(store, archived=True)}


def _read(store: Store, thread: ThreadId) -> Snapshot | None:
    try:
        head = find_head(store, thread)
        snapshot = None if head is None else read_snapshot(store, head.commit)
        if snapshot is not None:
            snapshot.get_start()
    except StoreDamaged:
        return None
    return snapshot


def _find_task(snapshot: Snapshot) -> str:
    lines = str(snapshot.get_start().payload["prompt"]).strip().splitlines()
    return lines[0][:_LONGEST_TASK] if lines else ""


def _count_alike(one: str, other: str) -> int:
    for number, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return number
    return min(len(one), len(other))
