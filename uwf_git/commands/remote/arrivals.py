"""Check what a remote sent, in a child process with limits, before its objects are in the store."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from uwf_git.agents.limited_fork import LimitedRunDied, LimitHit, RunLimits, run_limited
from uwf_git.commands.split.family import STRANGER_HINT, Strangers
from uwf_git.commands.verify.finding import Finding
from uwf_git.commands.verify.history import KnownHeads, heads_of_store
from uwf_git.commands.verify.thread import Claim, RefKind, ThreadChecks
from uwf_git.commands.verify.tree import TreeChecks
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.objects.json_file import DEFAULT_BLOB_BYTES
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.incoming import mapped_bytes
from uwf_git.store.remotes.limits import read_receive_limits
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE

# Check what a remote sent in a child process with limits, as a hub checks a push.
#
# A few kilobytes of JSON can take gigabytes as Python values.

_MEMORY_BYTES = 320 * 1024 * 1024
# A larger blob takes this much more, as text, as a document and in canonical form.
_TIMES_A_BLOB = 24
_LARGEST_BLOB = 4 * 1024**3


def first_finding(store: Store, check: Callable[[], Iterator[Finding]]) -> Finding | None:
    """Return the first finding of *check*, which runs in a child; None without any."""
    limits = read_receive_limits(store.config)
    more = min(limits.most_blob_bytes, _LARGEST_BLOB) - DEFAULT_BLOB_BYTES
    memory = _MEMORY_BYTES + _TIMES_A_BLOB * max(more, 0) + mapped_bytes(store.objects)
    try:
        found = run_limited(
            lambda: list(islice(check(), 1)),
            limits=RunLimits(memory, limits.timeout_s, limits.timeout_s),
            what="the check of what came",
        )
    except LimitHit as hit:
        setting = "uwf.maxBlobSize" if hit.facts["limit"] == "memory" else "uwf.receiveTimeout"
        return Finding(hit.message, f"if it is right: `git config --global {setting} NUMBER`")
    except LimitedRunDied as error:
        return Finding(error.message, error.hint or "")
    return Finding(*found[0]) if found else None


# Check many fetched threads together, so that shared nodes are checked once and in one child.
#
# A thread that does not pass must be checked alone to learn why: one finding fails its whole
# batch.

MOST_FAILED = 300
"""After so many checks that failed, refs of the same fetch that have not passed are not read."""

_MOST_AT_ONCE = 100
_PARENT = b"\nUwf-Parent-Thread: "

_NOT_READ = Finding(
    f"it was not read, for {MOST_FAILED} checks of other refs of the same fetch had failed",
    "repair the refs that were refused at the remote, or delete them there; then fetch again",
)

T = TypeVar("T")


class Arrival(NamedTuple):
    """A fetched thread: its commit here, if it has one, and its commit at the remote."""

    thread: ThreadId
    known: Oid | None
    tip: Oid
    archived: bool

    @property
    def ref(self) -> str:
        return (ARCHIVE if self.archived else ACTIVE) + self.thread


class Verdicts(NamedTuple):
    passed: set[Arrival]
    refused: dict[Arrival, Finding]


def judge_arrivals(store: Store, arrivals: Iterable[Arrival]) -> Verdicts:
    """Check threads, many in one child; what a passed thread shares is trusted."""
    tips: dict[ThreadId, Oid] = {}
    heads = heads_of_store(store, tips)

    def trust(passed: Arrival) -> None:
        tips[passed.thread] = passed.tip
        heads.trust(passed.tip)

    # What is here goes on whatever else is offered, and branches come after the threads that they
    # share most of their history with.
    ordered = sorted(arrivals, key=lambda each: (each.known is None, _has_parent(store, each)))
    refused = judge_together(store, ordered, partial(check_arrivals, store, heads=heads), trust)
    return Verdicts(set(ordered) - refused.keys(), refused)


def judge_together(
    store: Store,
    items: Sequence[T],
    check: Callable[[Sequence[T]], Iterator[Finding]],
    accept: Callable[[T], object] = lambda _item: None,
) -> dict[T, Finding]:
    """Return why items are refused; each other item was accepted before the next was checked.

    Items that do not pass together are halved, until too many checks have failed: of endless bad
    refs, few are looked at.
    """
    refused: dict[T, Finding] = {}
    failed = 0
    starts = range(0, len(items), _MOST_AT_ONCE)
    waiting = [items[start : start + _MOST_AT_ONCE] for start in reversed(starts)]
    while waiting:
        part = waiting.pop()
        is_read = failed < MOST_FAILED
        finding = _first_finding(store, partial(check, part)) if is_read else _NOT_READ
        failed += finding is not None
        if finding is None:
            for each in part:
                accept(each)
        elif len(part) == 1:
            refused[part[0]] = finding
        else:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]
    return refused


def _first_finding(store: Store, check: Callable[[], Iterator[Finding]]) -> Finding | None:
    try:
        return first_finding(store, check)
    except StoreDamaged as error:
        return Finding(error.message, error.hint or "see `git fsck`")


def check_arrivals(
    store: Store, batch: Sequence[Arrival], heads: KnownHeads | None = None
) -> Iterator[Finding]:
    """Check the arrivals in one run; what they share with *heads*, or those here, is trusted."""
    known = heads or heads_of_store(store)
    checks = ThreadChecks(TreeChecks(store), known)
    tips = {each.thread: each.tip for each in batch}
    strangers = Strangers(store.objects, lambda thread: [known.find(thread), tips.get(thread)])
    for each in batch:
        place: RefKind = "archive" if each.archived else "active"
        yield from checks.check(Claim(each.ref, each.thread, each.tip, place), known=each.known)
        stranger = strangers.find_below(each.tip)
        if stranger is None and each.known is None:
            stranger = strangers.find_above(each.thread, each.tip)
        if stranger is not None:
            yield Finding(stranger, STRANGER_HINT, each.ref, each.tip)
    yield from checks.finish()


def _has_parent(store: Store, arrival: Arrival) -> bool:
    try:
        return _PARENT in read_commit(store.objects, arrival.tip).message
    except StoreDamaged:
        return False  # reported by the check
