"""Find the refs to verify, and their order.

Workflows come first, so that a damaged node is reported for its workflow; then threads from the
oldest to the newest, so that what a fork shares is reported for its origin. Each file of refs is
read once.
"""

import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.names import NotAThreadId, ThreadId, is_thread_id
from uwf_git.store.lookup.cas_nodes import NODES_REF
from uwf_git.store.oid import Oid, is_oid
from uwf_git.store.refs.refs import list_refs
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, resolve_thread
from uwf_git.store.threads.history import KEPT, list_preserved, list_preserved_threads
from uwf_git.store.workflows.registry import WORKFLOWS, list_names

TargetKind = Literal["workflow", "nodes", "active", "archive", "kept"]


def no_such_ref(text: str) -> Refused:
    shown = text[:100] if text and text.isprintable() else repr(text[:100])
    return Refused(
        f"there is no thread, workflow or ref {shown} that could be verified",
        code="no-such-ref",
        hint="`uwf thread list --all` and `uwf workflow list` show them; without a name all "
        "are verified",
        ref=text[:100],
    )


class Target(NamedTuple):
    kind: TargetKind
    ref: str
    name: str

    tip: Oid | None
    """The commit; None if the ref holds no object id."""


def find_targets(store: Store, texts: list[str]) -> list[Target]:
    """Return all refs, or those that *texts* name: a full ref, a workflow, or a thread's refs."""
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
    for thread in list_preserved_threads(store):
        yield from _kept(store, thread)


_THREADS: tuple[tuple[TargetKind, str], ...] = (("archive", ARCHIVE), ("active", ACTIVE))


def _listed(store: Store, prefix: str) -> Iterator[tuple[str, Oid | None]]:
    listed = list_refs(store.path, prefix)
    yield from listed.items()
    # A ref without an object id is not listed.
    for name in store.refs.names(prefix):
        if name not in listed and "/" not in name:
            try:
                yield name, store.refs.find(prefix + name)
            except StoreDamaged:
                yield name, None


def _kept(store: Store, thread: ThreadId) -> Iterator[Target]:
    for commit in list_preserved(store, thread):
        yield Target("kept", f"{KEPT}{thread}/{commit}", thread, commit)


def _meant(store: Store, text: str) -> Iterator[Target]:
    name = unicodedata.normalize("NFC", text)
    if name.startswith("refs/"):
        found = list(_of_ref(store, name))
        if not found:
            raise no_such_ref(text)
        yield from found
    elif name in list_names(store):
        yield from _of_ref(store, WORKFLOWS + name)
    else:
        try:
            thread = resolve_thread(store, text)
        except NotAThreadId:
            raise no_such_ref(text) from None
        for _kind, prefix in _THREADS:
            yield from _of_ref(store, prefix + thread)
        yield from _kept(store, thread)


def _of_ref(store: Store, ref: str) -> Iterator[Target]:
    """Return the target of a full ref; none if it does not exist or is not one of uwf."""
    kind, name = _sort(ref) or (None, "")
    try:
        tip = store.refs.find(ref)
        is_there = tip is not None
    except StoreDamaged:
        tip, is_there = None, True
    if kind is not None and is_there:
        yield Target(kind, ref, name, tip)


def _sort(ref: str) -> tuple[TargetKind, str] | None:
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
