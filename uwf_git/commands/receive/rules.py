"""The rules of a shared store: judge a push by names, moves, and the new commits.

A push is judged as a whole, and nothing is written. Branches, tags and other refs pass.
git's own settings do not do: receive.deny* protects branches only, and the `update` hook sees one
ref at a time, so it cannot tell a deletion from an archiving.
Source: FORMAT.md, "Refs".
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from uwf_git.commands.receive.ref_rules import (
    BranchRules,
    Push,
    find_bad_join,
    find_bad_move,
    find_bad_name,
)
from uwf_git.commands.receive.ref_update import RefUpdate, Refusal, ours_among
from uwf_git.commands.split.family import STRANGER_HINT, Strangers
from uwf_git.commands.verify.finding import Finding
from uwf_git.commands.verify.history import heads_of_store
from uwf_git.commands.verify.puts import check_puts
from uwf_git.commands.verify.thread import Claim, ThreadChecks
from uwf_git.commands.verify.tree import TreeChecks
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.store.objects.limited import LimitedObjects
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.limits import read_receive_limits
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE

__all__ = ["RefUpdate", "Refusal", "check_received"]

_MOST_FINDINGS = 10


def check_received(store: Store, updates: Sequence[RefUpdate]) -> list[Refusal]:
    """Return why a push of *updates* into *store* is refused; an empty list accepts it.

    *store* has the refs from before the push and the objects from after it.

    Raises:
        Refused: a setting of the store is invalid.
    """
    limits = read_receive_limits(store.config)
    objects = LimitedObjects(store.objects, most_blob_bytes=limits.most_blob_bytes)
    store = store._replace(objects=objects)
    return list(_Judging(Push(store, {each.name: each for each in updates})).judge())


class _Judging:
    """One push: what its threads share is read once."""

    def __init__(self, push: Push) -> None:
        self._push = push
        trees = TreeChecks(push.store)
        self._branches = BranchRules(push, trees.recent)
        self._threads = ThreadChecks(
            trees,
            heads_of_store(push.store),
            lambda joined: find_bad_join(push, joined.thread, joined.tip),
        )
        self._strangers = Strangers(trees.recent, push.list_tips)

    def judge(self) -> Iterator[Refusal]:
        """Yield why the push is refused."""
        for update in ours_among(list(self._push.updates.values())):
            yield from self._check(update)
        # What needs a limited process is checked for all threads together.
        for finding in islice(self._threads.finish(), _MOST_FINDINGS):
            yield Refusal(finding.ref or "", finding.message, finding.hint)

    def _check(self, update: RefUpdate) -> Iterator[Refusal]:
        push = self._push
        try:
            refusal = find_bad_name(push, update) or find_bad_move(push, update)
        except StoreDamaged as error:
            refusal = Refusal(update.name, error.message, error.hint or "see `git fsck`")
        if refusal is not None:
            yield refusal
        elif update.new is not None:
            found = list(self._check_content(update, update.new))
            if not found and update.name.startswith((ACTIVE, ARCHIVE)):
                found += filter(None, [self._branches.find_bad_branch(update, update.new)])
            yield from found

    def _check_content(self, update: RefUpdate, tip: Oid) -> Iterator[Refusal]:
        findings = self._findings(update.name, tip)
        for finding in islice(findings, _MOST_FINDINGS):
            yield Refusal(update.name, finding.message, finding.hint)
        if next(findings, None) is not None:
            hint = f"`uwf verify {update.name}`, in the store that pushed it, lists them all"
            yield Refusal(update.name, "there are more problems with it", hint)
        stranger = self._find_stranger(update.name, tip)
        if stranger is not None:
            yield Refusal(update.name, stranger, STRANGER_HINT)

    def _find_stranger(self, name: str, tip: Oid) -> str | None:
        thread = ThreadId(name.removeprefix(ACTIVE).removeprefix(ARCHIVE))
        if not is_thread_id(thread):
            return None
        refs = self._push.store.refs
        below = self._strangers.find_below(tip)
        if below is not None or refs.find(ACTIVE + thread) or refs.find(ARCHIVE + thread):
            # A branch that is here was judged when it came, and whenever its thread splits.
            return below
        return self._strangers.find_above(thread, tip)

    def _findings(self, name: str, tip: Oid) -> Iterator[Finding]:
        """Check the commits of *tip* that are not stored yet."""
        store = self._push.store
        if name.startswith(ACTIVE):
            thread = ThreadId(name.removeprefix(ACTIVE))
            claim = Claim(name, thread, tip, "active")
            return self._threads.check(claim, known=store.refs.find(name))
        if name.startswith(ARCHIVE):
            thread = ThreadId(name.removeprefix(ARCHIVE))
            claim = Claim(name, thread, tip, "archive")
            return self._threads.check(claim, known=store.refs.find(ACTIVE + thread))
        return check_puts(store, [(name, tip, store.refs.find(name))])
