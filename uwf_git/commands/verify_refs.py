"""What is verified: the refs of a store that are meant.

Owns: what `REF` on the command line means, and the order in which refs are looked at.
Knows nothing of: what is checked.
Always true: one look at each file of refs, however many there are. Workflows come first, so that
what threads have of them is told of them; then threads from the oldest to the newest, so that what
a fork has in common with its origin is told of the origin.
"""

import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.thread_id import NotAThreadId, ThreadId, is_thread_id
from uwf_git.store.heads import ACTIVE, ARCHIVE, resolve_thread
from uwf_git.store.kept import KEPT, list_kept, list_kept_threads
from uwf_git.store.loose_nodes import NODES_REF
from uwf_git.store.ref_listing import list_refs
from uwf_git.store.refs import Oid, is_oid
from uwf_git.store.registry import WORKFLOWS, list_names
from uwf_git.store.store import Store

Kind = Literal["workflow", "nodes", "active", "archive", "kept"]


class NoSuchRef(Refused):
    """Nothing in this store is called so."""

    code = "no-such-ref"

    def __init__(self, text: str) -> None:
        shown = text[:100] if text and text.isprintable() else repr(text[:100])
        super().__init__(
            f"there is no thread, workflow or ref {shown} that could be verified",
            hint="`uwf thread list --all` and `uwf workflow list` show yours; without a name all "
            "are verified",
            ref=text[:100],
        )


class Target(NamedTuple):
    """A ref that is to be verified."""

    kind: Kind
    ref: str
    name: str
    """Of a thread its id, of a workflow its name."""

    tip: Oid | None
    """What it points at; None if it holds no object id."""


def find_targets(store: Store, texts: list[str]) -> list[Target]:
    """Give the refs that *texts* mean, each once; all there are when there are no texts.

    Each is a ref in full, the name of a workflow, or a thread's id or a beginning of it; a thread
    means all its refs.

    Raises:
        NoSuchRef, NoSuchThread, AmbiguousThread: one means none, or several.
    """
    if not texts:
        return list(_all(store))
    targets = [target for text in texts for target in _meant(store, text)]
    return list(dict.fromkeys(targets))


def _all(store: Store) -> Iterator[Target]:
    for name, tip in _listed(store, WORKFLOWS):
        yield Target("workflow", WORKFLOWS + name, name, tip)
    yield from _of_ref(store, NODES_REF)
    threads = [
        Target(kind, prefix + name, name, tip)
        for kind, prefix in _THREADS
        for name, tip in _listed(store, prefix)
        if is_thread_id(name)
    ]
    # Of two refs of a thread the archived one counts, so it comes first.
    yield from sorted(threads, key=lambda target: (target.name, target.kind != "archive"))
    for thread in list_kept_threads(store):
        yield from _kept(store, thread)


_THREADS: tuple[tuple[Kind, str], ...] = (("archive", ARCHIVE), ("active", ACTIVE))


def _listed(store: Store, prefix: str) -> Iterator[tuple[str, Oid | None]]:
    listed = list_refs(store, prefix)
    yield from listed.items()
    # What holds no object id is not listed.
    for name in store.refs.names(prefix):
        if name not in listed and "/" not in name:
            try:
                yield name, store.refs.find(prefix + name)
            except StoreDamaged:
                yield name, None


def _kept(store: Store, thread: ThreadId) -> Iterator[Target]:
    for commit in list_kept(store, thread):
        yield Target("kept", f"{KEPT}{thread}/{commit}", thread, commit)


def _meant(store: Store, text: str) -> Iterator[Target]:
    name = unicodedata.normalize("NFC", text)
    if name.startswith("refs/"):
        found = list(_of_ref(store, name))
        if not found:
            raise NoSuchRef(text)
        yield from found
    elif name in list_names(store):
        yield from _of_ref(store, WORKFLOWS + name)
    else:
        try:
            thread = resolve_thread(store, text)
        except NotAThreadId:
            raise NoSuchRef(text) from None
        for _kind, prefix in _THREADS:
            yield from _of_ref(store, prefix + thread)
        yield from _kept(store, thread)


def _of_ref(store: Store, ref: str) -> Iterator[Target]:
    """Give the target of a ref in full; nothing if it is not there, or none of ours."""
    sorted_out = _sort(ref)
    if sorted_out is None:
        return
    kind, name = sorted_out
    try:
        tip = store.refs.find(ref)
    except StoreDamaged:
        yield Target(kind, ref, name, None)
        return
    if tip is not None:
        yield Target(kind, ref, name, tip)


def _sort(ref: str) -> tuple[Kind, str] | None:
    if ref == NODES_REF:
        return "nodes", ref
    if ref.startswith(WORKFLOWS):
        return "workflow", ref.removeprefix(WORKFLOWS)
    for kind, prefix in _THREADS:
        if ref.startswith(prefix) and is_thread_id(ref.removeprefix(prefix)):
            return kind, ref.removeprefix(prefix)
    thread, _slash, commit = ref.removeprefix(KEPT).partition("/")
    is_kept = ref.startswith(KEPT) and is_thread_id(thread) and is_oid(commit)
    return ("kept", thread) if is_kept else None
