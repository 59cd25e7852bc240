"""The rules of a shared store: judge a push by names, moves, and the new commits.

A push is judged as a whole, and nothing is written. Branches, tags and other refs pass.
git's own settings do not do: receive.deny* protects branches only, and the `update` hook sees one
ref at a time, so it cannot tell a deletion from an archiving.
Source: FORMAT.md, "Refs".
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from uwf_git.commands.receive.ref_rules import Push, find_bad_move, find_bad_name
from uwf_git.commands.receive.ref_update import RefUpdate, Refusal, ours_among
from uwf_git.commands.verify.finding import Finding
from uwf_git.commands.verify.puts import check_put_nodes
from uwf_git.commands.verify.thread import check_thread
from uwf_git.commands.verify.workflow import check_workflow
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.objects.limited import LimitedObjects
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.limits import read_receive_limits
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.workflows.registry import WORKFLOWS

__all__ = ["RefUpdate", "Refusal", "check_received"]

_MOST_FINDINGS = 10


def check_received(store: Store, updates: Sequence[RefUpdate]) -> list[Refusal]:
    """Return why a push of *updates* into *store* is refused; an empty list accepts it.

    *store* has the refs from before the push and the objects from after it.

    Raises:
        BadReceiveLimit: a setting of the store is invalid.
    """
    limits = read_receive_limits(store.config)
    objects = LimitedObjects(store.objects, most_blob_bytes=limits.most_blob_bytes)
    push = Push(store._replace(objects=objects), {each.name: each for each in updates})
    return [refusal for update in ours_among(updates) for refusal in _check(push, update)]


def _check(push: Push, update: RefUpdate) -> Iterator[Refusal]:
    try:
        refusal = find_bad_name(push, update) or find_bad_move(push, update)
    except StoreDamaged as error:
        refusal = Refusal(update.name, error.message, error.hint or "see `git fsck`")
    if refusal is not None:
        yield refusal
    elif update.new is not None:
        yield from _check_content(push, update, update.new)


def _check_content(push: Push, update: RefUpdate, tip: Oid) -> Iterator[Refusal]:
    findings = _findings(push, update.name, tip)
    for finding in islice(findings, _MOST_FINDINGS):
        yield Refusal(update.name, finding.message, finding.hint)
    if next(findings, None) is not None:
        hint = f"`uwf verify {update.name}`, in the store that pushed it, lists them all"
        yield Refusal(update.name, "there are more problems with it", hint)


def _findings(push: Push, name: str, tip: Oid) -> Iterator[Finding]:
    """Check the commits of *tip* that are not stored yet."""
    store = push.store
    if name.startswith(ACTIVE):
        thread = ThreadId(name.removeprefix(ACTIVE))
        return check_thread(store, thread, tip, archived=False, known=store.refs.find(name))
    if name.startswith(ARCHIVE):
        thread = ThreadId(name.removeprefix(ARCHIVE))
        known = store.refs.find(ACTIVE + thread)
        return check_thread(store, thread, tip, archived=True, known=known)
    if name.startswith(WORKFLOWS):
        workflow = name.removeprefix(WORKFLOWS)
        return check_workflow(store, workflow, tip, known=store.refs.find(name))
    return check_put_nodes(store, tip, known=store.refs.find(name))
