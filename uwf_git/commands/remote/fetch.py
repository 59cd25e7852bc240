"""`uwf fetch` and `uwf clone`: receive, check, take in, move tracking refs, reconcile."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache, partial
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.family import list_joined
from uwf_git.commands.remote.push_plan import with_family
from uwf_git.commands.remote.reconcile import (
    Arrival,
    Reconciled,
    judge_arrivals,
    judge_together,
    reconcile_thread,
    reconcile_workflow,
    take_over_steering,
)
from uwf_git.commands.verify.history import Finding, heads_of_store, list_beginnings
from uwf_git.commands.verify.puts import check_puts
from uwf_git.errors import Conflict, Refused, StoreDamaged, UwfError, name_some
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.workflow_name import fold_workflow_name
from uwf_git.store.durable import sync_directories, sync_folder
from uwf_git.store.git.config import refuse_mirror, set_config
from uwf_git.store.objects.commit import NEWER, OLD, Needed, is_descendant, list_new_objects
from uwf_git.store.packing import has_cut_history
from uwf_git.store.refs import Refs
from uwf_git.store.remotes.incoming import (
    FetchRequest,
    Incoming,
    copy_objects,
    read_fetch_limits,
    receive_objects,
)
from uwf_git.store.remotes.remotes import (
    Remote,
    SharedRefs,
    Sides,
    add_remote,
    bad_remote_url,
    choose_remote,
    find_peer,
    folder_of,
    parse_remote_url,
    read_shared,
    read_sides,
    remote_url,
    sort_refs,
    track,
    update_tracking,
)
from uwf_git.store.remotes.transport import Access, fetch_pack
from uwf_git.store.store import Store, create_store, open_store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.history import read_snapshot, walk_trunks
from uwf_git.store.threads.local_files import has_lock_file, lock_thread
from uwf_git.store.workflows import WORKFLOWS, list_names

# Check fetched threads and workflows before their objects are in the store, and drop the bad
# ones.
#
# What is refused leaves nothing here: `git fsck` reads every object and ref of a store.


class Judged(NamedTuple):
    passed: set[Arrival]
    workflows: set[tuple[str, Oid]]

    refused: list[Reconciled]


class _Refs(Refs):
    """The refs here, with the workflows of the same fetch that have passed: names are unique."""

    def __init__(self, git_dir: str) -> None:
        super().__init__(git_dir, durable=False)
        self.passed: dict[str, Oid] = {}

    def find(self, name: str) -> Oid | None:
        return self.passed.get(name) or super().find(name)


def judge_fetched(
    received: Store, here: SharedRefs, wanted: Mapping[tuple[str, str], Oid]
) -> Judged:
    """Check the refs of the remote in *wanted*, by the folder below refs/ and the name.

    *received* is the store with the fetched objects, *here* are its own refs.
    """
    arrivals: list[Arrival] = []
    workflows: list[tuple[str, Oid, Oid | None]] = []
    for (kind, name), oid in wanted.items():
        # Of an archived thread, the active ref is not read any more.
        known = _known(received, here.find("threads" if kind == "archive" else kind, name), oid)
        if kind == "workflows":
            workflows.append((WORKFLOWS + name, oid, known))
        else:
            arrivals.append(Arrival(ThreadId(name), known, oid, kind == "archive"))
    refs = _Refs(received.path)
    received = received._replace(refs=refs)
    check = partial(check_puts, received)
    bad = judge_together(received, workflows, check, lambda each: refs.passed.update([each[:2]]))
    passed, refused = judge_arrivals(received, arrivals)
    return Judged(
        passed,
        {*refs.passed.items()},
        [
            Reconciled("refused", ref, known, oid, finding)
            for (ref, oid, known), finding in bad.items()
        ]
        + view_refused(refused),
    )


def view_refused(refused: Mapping[Arrival, Finding]) -> list[Reconciled]:
    return [
        Reconciled("refused", each.ref, each.known, each.tip, finding)
        for each, finding in refused.items()
    ]


def _known(received: Store, here: Oid | None, there: Oid) -> Oid | None:
    """Return the commit *here* if *there* goes on from it: its history was checked before."""
    with suppress(StoreDamaged):
        return here if here and is_descendant(received.objects, there, here) else None
    return None


# `uwf fetch`: receive, check, take in, move tracking refs, reconcile.
#
# Tracking refs name only commits that arrived complete and passed the checks; of what is refused,
# no object and no ref stays. A local ref moves only under its thread's lock, after a check, to a
# descendant: a remote that lies, or a transfer that breaks off, cannot lose anything here.


class Fetched(NamedTuple):
    remote: Remote
    reconciled: list[Reconciled]
    """What happened to each thread and workflow that changed."""

    busy: list[tuple[ThreadId, UwfError]]
    """Threads that are locked; the next fetch takes them over."""

    ignored: list[str]
    """Refs of the remote that name neither a thread nor a workflow."""

    unchanged: int

    missing: tuple[ThreadId, ...] = ()
    """Threads that were named and that the remote does not have."""

    def of(self, event: str) -> list[Reconciled]:
        return [each for each in self.reconciled if each.event == event]

    def failure(self) -> UwfError | None:
        """Return the worst error, which sets the exit status; None if all went well."""
        refused, diverged = self.of("refused"), self.of("diverged")
        others = len(refused or diverged or self.busy) - 1
        more = f" (and {others} more)" if others > 0 else ""
        if refused:
            first = refused[0]
            problem = first.finding.message if first.finding else "it is damaged"
            problem = problem if first.tracked else f"here, {problem}"
            return StoreDamaged(
                f"{first.ref} of {self.remote.name} was not taken over: {problem}{more}",
                code="refs-refused",
                hint=refusal_hint(first),
                ref=first.ref,
                commit=first.tracked,
            )
        if diverged:
            first = diverged[0]
            what = f"{'workflow' if first.ref.startswith(WORKFLOWS) else 'thread'} {first.thread}"
            sides = f"here at {first.local}, at {self.remote.name} at {first.tracked}"
            sides = first.finding.message if first.finding else sides
            return Conflict(
                f"{what} has diverged: {sides}{more}",
                code="diverged",
                hint=first.hint,
                ref=first.ref,
                local=first.local,
                tracked=first.tracked,
            )
        if self.busy:
            busy = self.busy[0][1]
            return Conflict(busy.message + more, code="threads-busy", hint=busy.hint, **busy.facts)
        if self.missing:
            return Refused(
                f"{self.remote.name} has no thread {name_some(self.missing)}",
                code="not-at-remote",
                hint=f"`uwf push {self.remote.name} {self.missing[0]}` sends one that is here",
                remote=self.remote.name,
                threads=list(self.missing),
            )
        return None


def refusal_hint(reconciled: Reconciled) -> str:
    """Return what to do about something that was not taken over."""
    hint = "" if reconciled.finding is None else reconciled.finding.hint
    if hint and (reconciled.tracked is None or hint.startswith((OLD, NEWER))):
        # The damage is here, or there is none.
        return hint
    return (
        "your store is unchanged; repair it at the remote: `UWF_REPO=. uwf verify "
        f"{reconciled.ref}`, typed there, says what is wrong"
    )


def fetch_remote(
    store: Store,
    caller: Caller,
    name: str | None,
    threads: Sequence[ThreadId] = (),
    *,
    and_workflows: bool = False,
) -> Fetched:
    """Fetch from the remote *name*, all or *threads* with their family, and fast-forward.

    *and_workflows*: with *threads* also take over, and tell nothing of, the workflows.
    """
    refuse_mirror(store.config)
    remote = choose_remote(store.config, name)
    if not threads:
        return _fetch(store, caller, _Received(store, remote, None, and_workflows=True))
    seen = read_shared(store, remote)
    asked = wanted = set(with_family(store, threads, seen))
    whole = Fetched(remote, [], [], [], 0)
    # Which threads a new one belongs with is known once it is here.
    while wanted:
        read_fetch_limits(store.config).check_refs(len(asked))
        part = _fetch(store, caller, _Received(store, remote, wanted, and_workflows=and_workflows))
        whole = whole._replace(
            reconciled=whole.reconciled + [x for x in part.reconciled if x.thread in asked],
            busy=whole.busy + part.busy,
            unchanged=whole.unchanged + part.unchanged,
            missing=(*whole.missing, *(each for each in threads if each in part.missing)),
        )
        wanted = set(with_family(store, threads, seen)) - asked
        asked = asked | wanted
    return whole


def _fetch(store: Store, caller: Caller, received: "_Received") -> Fetched:
    with (
        ExitStack() as until_tracked,
        receive_objects(store, read_fetch_limits(store.config)) as incoming,
    ):
        access = Access(remote_url(store, received.remote), store.config, caller.environ)
        access.check_trusted(store)
        fetch_pack(access, received.choose, incoming)
        judged = received.drop_refused(incoming)
        if not judged.refused:
            incoming.move_into_store(until_tracked)
        elif received.wanted:
            # Only the objects of what was not refused move into the store.
            needed: dict[Needed, None] = {}
            for oid in received.wanted.values():
                found = list_new_objects(incoming.objects, oid, received.had(), needed)
                needed.update(dict.fromkeys(found))
            with receive_objects(store, read_fetch_limits(store.config)) as kept:
                copy_objects(incoming.objects, list(needed), kept)
                kept.move_into_store(until_tracked)
        update_tracking(store, received.remote, seen=received.seen, now=received.there)
    return _reconcile(store, caller, received, judged)


class _Received:
    """The refs here, the tracking refs, and the refs that the remote has now."""

    def __init__(
        self, store: Store, remote: Remote, threads: set[ThreadId] | None, *, and_workflows: bool
    ) -> None:
        self.store, self.remote, self._threads = store, remote, threads
        self._and_workflows = and_workflows
        self.seen = read_shared(store, remote)
        self.here = read_shared(store)
        # What a plain `git fetch --depth` or `--filter` brought may lack its history or its files.
        is_part = store.config.get_flag(f"remote.{remote.name}.promisor", default=False)
        is_part = is_part or has_cut_history(store)
        self._whole = (self.here,) if is_part else (self.seen, self.here)
        self.there = SharedRefs({}, {}, {})
        self.ignored: list[str] = []
        self.missing: set[ThreadId] = set()
        self.wanted: dict[tuple[str, str], Oid] = {}

    def choose(self, refs: dict[str, Oid]) -> FetchRequest:
        """Return the commits to request, and commits here that the remote may know."""
        self.there, self.ignored = sort_refs(refs)
        if self._threads is not None:
            flows = self.there.workflows.items() if self._and_workflows else ()
            new = {name for name, oid in flows if self.here.workflows.get(name) != oid}
            self.there, self.ignored = self.there.only(self._threads, new), []
            self.seen = self.seen.only(self._threads, new)
            self.missing = {each for each in self._threads if self.there.find_tip(each) is None}
        haves: dict[Oid, None] = {}
        shared: dict[Oid, None] = {}
        for kind, name, oid in self.there.rows():
            known = self._known(kind, name)
            if oid in known:
                shared[oid] = None
            elif not any(is_descendant(self.store.objects, each, oid) for each in known):
                self.wanted[kind, name] = oid
                haves.update(dict.fromkeys(known))
        read_fetch_limits(self.store.config).check_refs(len(self.wanted))
        return FetchRequest(list(dict.fromkeys(self.wanted.values())), [*haves, *shared])

    def _known(self, kind: str, name: str) -> list[Oid]:
        """Return the commits of a thread or workflow here, tracking refs first."""
        kinds = ("workflows",) if kind == "workflows" else ("archive", "threads")
        found = [side.find(each, name) for side in self._whole for each in kinds]
        return [oid for oid in found if oid is not None]

    def had(self) -> set[Oid]:
        """Return the commits that are here with their history."""
        return {oid for side in self._whole for _kind, _name, oid in side.rows()}

    def drop_refused(self, incoming: Incoming) -> Judged:
        """Drop the refs whose objects did not all arrive, or do not pass the checks."""
        whole: set[Needed] = set()
        refused = []
        had, heads = self.had(), heads_of_store(self.store._replace(objects=incoming.objects))
        had |= list_beginnings(incoming.objects, self.wanted.values(), had, heads)
        for (kind, name), oid in self.wanted.items():
            try:
                whole.update(list_new_objects(incoming.objects, oid, had, whole))
            except StoreDamaged as error:
                ref = f"refs/{kind}/{name}"
                finding = Finding(error.message, "see `git fsck` there", ref, oid)
                refused.append(Reconciled("refused", ref, self.here.find(kind, name), oid, finding))
        self._drop(refused)
        received = self.store._replace(objects=incoming.objects)
        judged = judge_fetched(received, self.here, self.wanted)
        self._drop(judged.refused)
        return judged._replace(refused=[*refused, *judged.refused])

    def _drop(self, refused: Iterable[Reconciled]) -> None:
        for each in refused:
            _refs, kind, name = each.ref.split("/", 2)
            del self.wanted[kind, name]
            folder = getattr(self.there, kind)
            before = self.seen.find(kind, name)
            if before is None:
                del folder[name]
            else:
                folder[name] = before


def _reconcile(store: Store, caller: Caller, received: _Received, judged: Judged) -> Fetched:
    remote, reconciled = received.remote, list(judged.refused)
    busy: list[tuple[ThreadId, UwfError]] = []
    # Also threads with both refs here, left by an interrupted archiving.
    threads = {*received.there.threads, *received.there.archive}
    threads |= received.here.threads.keys() & received.here.archive.keys()
    moved = _moved_threads(store, remote, threads)
    arrivals = list(_arrivals(store, moved))
    unread = judge_arrivals(store, [each for each in arrivals if each not in judged.passed])
    passed = judged.passed | unread.passed
    created = _create_threads(store, [each for each in arrivals if each in passed])
    reconciled += view_refused(unread.refused)
    reconciled += [Reconciled("created", each.ref, None, each.tip) for each in created]
    done = {each.thread for each in (*unread.refused, *created)}
    for thread in moved:
        if thread in done:
            continue
        try:
            with lock_thread(store, thread, since_ms=caller.now_ms()):
                reconciled.append(reconcile_thread(store, remote, thread, passed=passed))
        except Conflict as error:
            steered = take_over_steering(store, remote, thread, passed=passed)
            if steered is None:
                busy.append((thread, error))
            else:
                reconciled.append(steered)
    taken = {fold_workflow_name(name): name for name in list_names(store)}
    reconciled += [
        reconcile_workflow(store, remote, name, passed=judged.workflows, taken=taken)
        for name in received.there.workflows
    ]
    # Remove tracking refs of refused threads: older versions and plain git fetch make them.
    moves: dict[str, tuple[Oid | None, Oid | None]] = {
        each.ref.removeprefix("refs/"): (each.tracked, None)
        for each in reconciled
        if each.event == "refused"
    }
    track(store, remote, moves)
    changed = [each for each in reconciled if each.event != "unchanged"]
    unchanged = len(threads) - len(moved) + len(reconciled) - len(changed)
    advise = partial(_advise, store, remote, cache(partial(list_joined, store)))
    changed = [x._replace(hint=advise(x)) if x.event == "diverged" else x for x in changed]
    return Fetched(remote, changed, busy, received.ignored, unchanged, (*received.missing,))


def _advise(
    store: Store, remote: Remote, list_ends: Callable[[Oid], set[Oid]], at: Reconciled
) -> str:
    """Return what to type about something that has diverged."""
    thread, here, there = at.thread, at.local or Oid(""), at.tracked or Oid("")
    if at.finding is not None:
        return at.finding.hint
    if at.ref.startswith(WORKFLOWS):
        return (
            f"take theirs with `git update-ref {at.ref} {there} {here}` in the store, then put "
            "yours again on top"
        )
    sides, name = read_sides(store, remote, thread), remote.name
    if (peer := find_peer(store, thread, here, there)) is not None:
        return (
            f"{peer} agrees with what is here, so a fork alone settles nothing; to follow {name}: "
            f"`git update-ref -d {_name(thread, sides.archived)}` in {peer}, `uwf fetch {peer}`, "
            f"then `uwf thread fork {thread}`; to let {peer} win: `uwf thread fork {thread} --at "
            f"{there}` keeps the other side, the owner of {name} types `git update-ref -d "
            f"{_name(thread, sides.there_archived)}` there, and you `uwf push {name}`"
        )
    more = ""
    with suppress(StoreDamaged):  # told elsewhere
        # The outermost comes last; it may not have diverged itself.
        for around in walk_trunks(store, read_snapshot(store, here)):
            if at.local in list_ends(around.commit.oid):
                thread, here = around.record.thread, around.commit.oid
                more = ", with the branches that it joined"
    if not list_ends(here) and (fork := _find_fork(store, thread, here)) is not None:
        return (
            f"thread {fork} keeps yours already; `git update-ref -d "
            f"{_name(thread, sides.archived)} {here}` in the store, then `uwf fetch {name}`, lets "
            "this one follow the remote"
        )
    return (
        f"both are kept; `uwf thread fork {thread} --at {here}` makes yours a thread of its own, "
        f"and this one follows the remote{more}"
    )


def _name(thread: str, archived: Oid | None) -> str:
    return f"{ARCHIVE if archived else ACTIVE}{thread}"


def _find_fork(store: Store, thread: ThreadId, here: Oid) -> str | None:
    """Return a newer thread that goes on from *here* and is no branch."""
    shared, goes_on = read_shared(store), partial(is_descendant, store.objects)
    for name, tip in {**shared.threads, **shared.archive}.items():
        with suppress(StoreDamaged):
            if name > thread and goes_on(tip, here) and not read_snapshot(store, tip).get_trunk():
                return name
    return None


def _create_threads(store: Store, arrivals: Iterable[Arrival]) -> list[Arrival]:
    """Create the refs of those that are new here and that nobody has held; return which."""
    new = [each for each in arrivals if each.known is None]
    new = [each for each in new if not has_lock_file(store, each.thread)]
    try:
        created = store.refs.change({each.ref: (None, each.tip) for each in new})
    except Conflict:
        # Another process holds one of the refs: they are taken over one by one.
        return []
    return [each for each in new if each.ref in created]


def _moved_threads(store: Store, remote: Remote, threads: set[str]) -> dict[ThreadId, Sides]:
    """Return the threads that differ between the sides, found without reading a commit."""
    here, there = read_shared(store), read_shared(store, remote)
    refs = (here.threads, here.archive, there.threads, there.archive)
    sides = {ThreadId(name): Sides(*(each.get(name) for each in refs)) for name in sorted(threads)}
    return {thread: each for thread, each in sides.items() if not each.is_in_sync}


def _arrivals(store: Store, moved: dict[ThreadId, Sides]) -> Iterator[Arrival]:
    """Yield what is probably to be taken over; the locks of the threads are not held yet."""
    for thread, sides in moved.items():
        tip, known = sides.there, sides.active
        if sides.archived is not None or tip is None:
            continue
        if known is None or is_descendant(store.objects, tip, known):
            yield Arrival(thread, known, tip, archived=sides.there_archived is not None)


# `uwf clone`: make a new store with everything that another store shares.

ORIGIN = "origin"


class Cloned(NamedTuple):
    path: str
    fetched: Fetched


def clone_store(caller: Caller, url: str, path: str | None) -> Cloned:
    """Make a store at *path* with what *url* shares; *url* becomes the remote origin.

    The clone is made beside *path* and renamed at the end: complete, or not there at all.
    """
    named = path or folder_of(parse_remote_url(url, relative_to=caller.cwd).text)
    if not named:
        raise bad_remote_url(url, "has no name for the clone; give a path as well")
    target = os.path.realpath(os.path.join(caller.cwd, os.path.expanduser(named)))
    is_here = target == os.path.realpath(caller.cwd)
    is_empty = os.path.isdir(target) and not os.listdir(target)
    if is_here or (os.path.lexists(target) and not is_empty):
        raise Refused(
            f"{target} is the folder that you are in, which the clone would replace"
            if is_here
            else f"{target} exists already, and is not an empty folder",
            code="place-taken",
            hint="name another path: `uwf clone URL PATH`",
            path=target,
        )
    parent, name = os.path.split(target)
    made = os.path.join(parent, f".{name}.{os.urandom(4).hex()}.clone")
    try:
        create_store(made, environ=caller.environ)
        if is_empty:
            shutil.copymode(target, made)
        set_config(os.path.join(made, "config"), "uwf.store", "true")
        store = open_store(made, environ=caller.environ)
        add_remote(store, ORIGIN, url, cwd=caller.cwd)
        # No other process uses the store yet, so all refs are synced at once at the end.
        quick = store._replace(refs=Refs(made, durable=False))
        fetched = fetch_remote(quick, caller, ORIGIN)
        if store.config.get_flag("uwf.fsync", default=True):
            sync_folder(made)
        os.rename(made, target)
        sync_directories([parent])
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return Cloned(target, fetched)
