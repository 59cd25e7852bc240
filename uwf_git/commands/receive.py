"""A shared store: the rules for refs and commits in a push, and the hooks that ask them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, takewhile
from typing import Any, NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.agents.limited_fork import LimitedRunBug, RunLimits, run_limited
from uwf_git.commands.family import STRANGER_HINT, Strangers
from uwf_git.commands.split import find_own_split
from uwf_git.commands.verify.history import Finding, heads_of_store
from uwf_git.commands.verify.nodes import TreeChecks
from uwf_git.commands.verify.puts import check_put_ref
from uwf_git.commands.verify.thread import Claim, ThreadChecks
from uwf_git.engine.events import tell_record
from uwf_git.errors import StoreDamaged, UwfError, name_some
from uwf_git.model.names import Oid, ThreadId, is_thread_id
from uwf_git.model.workflow_name import check_workflow_name, fold_workflow_name
from uwf_git.store.git.hook_files import RefUpdate, Refusal, ours_among
from uwf_git.store.git.program import run_listener
from uwf_git.store.lookup import NODES_REF
from uwf_git.store.objects.commit import NEWER, OLD, descends, is_descendant
from uwf_git.store.objects.incoming_pack import LimitedObjects
from uwf_git.store.objects.objects import ObjectStore, read_blob
from uwf_git.store.remotes.incoming import bytes_to_check, open_received, read_receive_limits
from uwf_git.store.remotes.remotes import CLAIMS
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.history import Snapshot, read_at, walk_history
from uwf_git.store.workflows import WORKFLOWS

# The rules for refs in a push: which names are allowed, and which moves.
#
# The stored tip decides, not the old value that the pusher sent. The archive of a thread may come
# with the deletion of the active ref (`uwf push`) or without it (plain `git push`); then the
# active ref is deleted after the push.


@dataclass(frozen=True)
class Push:
    """The changes of a push, and the store before it."""

    store: Store
    updates: Mapping[str, RefUpdate]
    """By the name of the ref."""

    @cached_property
    def workflows(self) -> Mapping[str, list[str]]:
        """The names of workflows, those here first, by what is the same but for case."""
        pushed = (
            each.removeprefix(WORKFLOWS) for each in self.updates if each.startswith(WORKFLOWS)
        )
        found: dict[str, list[str]] = {}
        for name in (*self.store.refs.names(WORKFLOWS), *pushed):
            found.setdefault(fold_workflow_name(name), []).append(name)
        return found

    def find_coming(self, name: str) -> Oid | None:
        """Return the value of *name* after the push; None if it will not exist."""
        update = self.updates.get(name)
        return self.store.refs.find(name) if update is None else update.new

    def list_tips(self, thread: ThreadId) -> list[Oid | None]:
        """Return the commits that *thread* has before and after the push."""
        names = (ARCHIVE + thread, ACTIVE + thread)
        return [find(name) for name in names for find in (self.store.refs.find, self.find_coming)]


def find_bad_move(push: Push, update: RefUpdate) -> Refusal | None:
    """Return why *update* may not move its ref so; None if it may."""
    stored = push.store.refs.find(update.name)
    if stored == update.new:
        return None
    if update.name.startswith(ACTIVE):
        return _check_active(push, update, stored)
    if update.name.startswith(ARCHIVE):
        if stored is not None:
            done = "deleted" if update.new is None else "moved"
            return Refusal(
                update.name,
                f"an archived thread is never {done}; it ended at {stored}",
                "leave this ref out of the push",
            )
        stored = push.store.refs.find(ACTIVE + update.name.removeprefix(ARCHIVE))
    if update.name.startswith(CLAIMS):
        return _check_claim(push, update)
    if update.new is None:
        return _deleted(update.name)
    return _check_forward(push, update, update.new, stored)


def find_bad_join(push: Push, branch: ThreadId, tip: Oid) -> str | None:
    """Return why no thread may join *branch* at *tip*, leaving commits behind, or None."""
    for name in (ARCHIVE + branch, ACTIVE + branch):
        for find, where in ((push.store.refs.find, "here"), (push.find_coming, "in the same push")):
            if (ref := find(name)) is None or ref == tip:
                continue
            if name.startswith(ARCHIVE) or not is_descendant(push.store.objects, tip, ref):
                return f"the branch is at {ref} {where}"
    return None


class BranchRules:
    """Which branches the threads of a store, and those in a push, leave room for."""

    def __init__(self, push: Push, objects: ObjectStore) -> None:
        self._push, self._objects = push, objects
        self._lines: dict[Oid, _Line] = {}

    def find_bad_branch(self, update: RefUpdate, new: Oid) -> Refusal | None:
        """Return why the sound thread at *new* may not be a branch; None if it may or is no branch.

        Where the thread around it is here, or comes in the same push, the branch begins in the
        history of that, and leads to the end that was joined there.
        """
        split, around, joined = self._locate(read_at(self._objects, new))
        if split is None or around is None:
            return None
        if joined is None:
            is_near = is_descendant(self._objects, split.commit.oid, around)
            if is_near or self._line(around).has(split.commit.oid):
                return None
            problem = f"{around}, where thread {split.record.thread} is, does not lead back to it"
        elif new == joined or (
            update.name.startswith(ACTIVE) and is_descendant(self._objects, joined, new)
        ):
            return None
        else:
            problem = f"thread {split.record.thread} has joined it at {joined}"
        return Refusal(
            update.name,
            f"it began as a branch at {split.commit.oid}, and {problem}",
            "`uwf fetch` shows both sides, and how to keep yours; then `uwf push` leaves this out",
        )

    def _locate(self, at: Snapshot) -> tuple[Snapshot | None, Oid | None, Oid | None]:
        """Return where it began as a branch, the tip around that, and its end that was joined."""
        split, thread = find_own_split(at), at.record.thread
        if split is None:
            return None, None, None
        _split, _around, joined = self._locate(split)
        coming, outer = self._push.find_coming, split.record.thread
        around = joined or coming(ARCHIVE + outer) or coming(ACTIVE + outer)
        if around is None or is_descendant(self._objects, split.commit.oid, around):
            return split, around, None
        return split, around, self._line(around).list_ends(split.commit.oid).get(thread)

    def _line(self, tip: Oid) -> "_Line":
        return self._lines.setdefault(tip, _Line(self._objects, tip))


class _Line:
    """The history of a thread, read back as far as it is asked for."""

    def __init__(self, objects: ObjectStore, tip: Oid) -> None:
        self._objects = objects
        self._next: Oid | None = tip
        self._joined: tuple[Oid, ...] = ()
        self._ends: dict[Oid, tuple[Oid, ...]] = {}
        """What the join after each split has joined."""

    def has(self, split: Oid) -> bool:
        while split not in self._ends and self._next is not None:
            at = read_at(self._objects, self._next)
            if at.record.event == "join":
                self._joined = at.commit.parents[1:]
            elif at.record.event == "split":
                self._ends[at.commit.oid], self._joined = self._joined, ()
            self._next = next(iter(at.commit.parents), None)
        return split in self._ends

    def list_ends(self, split: Oid) -> dict[ThreadId, Oid]:
        ends = self._ends[split] if self.has(split) else ()
        return {read_at(self._objects, end).record.thread: end for end in ends}


def _check_active(push: Push, update: RefUpdate, stored: Oid | None) -> Refusal | None:
    thread = update.name.removeprefix(ACTIVE)
    archive = ARCHIVE + thread
    ended = push.store.refs.find(archive)
    coming = ended or push.find_coming(archive)
    if update.new is None:
        if stored is None or coming is None:
            return _deleted(update.name)
        if descends(push.store.objects, coming, stored):
            return None
        return Refusal(
            update.name,
            f"it is at {stored} here, and the archive that replaces it does not descend from it",
            "`uwf fetch` shows both sides; the thread has new commits here",
        )
    if ended is not None:
        return Refusal(
            update.name,
            f"thread {thread} has ended, and is archived here",
            "`uwf fetch` brings the archive and removes this ref; to continue from a step: "
            f"`uwf thread fork {thread}`",
        )
    if coming is not None and not descends(push.store.objects, coming, update.new):
        return Refusal(
            update.name,
            "the same push archives the thread at a commit that does not descend from it",
            "`uwf fetch` shows both sides",
        )
    return _check_forward(push, update, update.new, stored)


def _check_claim(push: Push, update: RefUpdate) -> Refusal | None:
    """Check a claim as hooks/pre-receive does, which lets pushes of claims alone pass."""
    if update.new is None:
        return None
    size = len(read_blob(push.store.objects, update.new))
    if size <= _CLAIM_BYTES:
        return None
    problem = f"a claim has at most {_CLAIM_BYTES} bytes, and not {size}"
    return Refusal(update.name, problem, "leave this ref out of the push")


def _check_forward(push: Push, update: RefUpdate, new: Oid, stored: Oid | None) -> Refusal | None:
    if stored is None or descends(push.store.objects, new, stored):
        return None
    return Refusal(
        update.name,
        f"{new} does not descend from {stored}, where it is here: history is never rewritten",
        "`uwf fetch` shows both sides, and how to keep yours as a fork",
    )


def _deleted(name: str) -> Refusal:
    return Refusal(
        name,
        "it would be lost: an active ref is deleted only together with its archiving",
        "leave this ref out of the push; `git push --mirror` and `--prune` delete what you "
        "do not have",
    )


_CLAIM_BYTES = 4096


def find_bad_name(push: Push, update: RefUpdate) -> Refusal | None:
    """Return why the name of the ref in *update* is not allowed; None if it is."""
    name = update.name
    if name.startswith("refs/uwf/"):
        return Refusal(
            name,
            "refs below refs/uwf/ belong to one store alone, and are not shared",
            "push threads, archive and workflows only; `git push --mirror` pushes too much",
        )
    problem = _find_problem(push, name)
    if problem is None:
        return None
    return Refusal(name, problem, "push it under another name, or leave it out")


def _find_problem(push: Push, name: str) -> str | None:
    for prefix in (ACTIVE, ARCHIVE, CLAIMS):
        if name.startswith(prefix):
            given = name.removeprefix(prefix)
            return None if is_thread_id(given) else f"{given[:60]!r} is not a thread id"
    if name.startswith(WORKFLOWS):
        return _find_workflow_problem(push, name)
    return None if name == NODES_REF else "uwf has no ref of that name"


def _find_workflow_problem(push: Push, name: str) -> str | None:
    given = name.removeprefix(WORKFLOWS)
    if (problem := check_workflow_name(given)) is not None:
        return f"{given[:60]!r} is not a workflow name: {problem}"
    if push.store.refs.find(name) is not None:
        return None
    for other in push.workflows[fold_workflow_name(given)]:
        if other != given:
            return f"it differs from the workflow {other} in case only (`uwf fetch` says more)"
    return None


_MOST_FINDINGS = 10
_OF_FORMATS = {
    OLD: "a uwf older than that of the hub wrote it: upgrade yours; what it wrote cannot be pushed "
    "here",
    NEWER: "a uwf newer than that of the hub wrote it: the hub's owner has to upgrade",
}


def check_received(store: Store, updates: Sequence[RefUpdate]) -> list[Refusal]:
    """Return why a push is refused, or []; *store* has the refs of before, the objects of after."""
    limits = read_receive_limits(store.config)
    objects = LimitedObjects(store.objects, most_blob_bytes=limits.most_blob_bytes)
    store = store._replace(objects=objects)
    return list(_Judging(Push(store, {each.name: each for each in updates})).judge())


class _Judging:
    """One push: what its threads share is read once."""

    def __init__(self, push: Push) -> None:
        self._push = push
        self._trees = trees = TreeChecks(push.store)
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
            yield _refuse(finding.ref or "", finding)

    def _check(self, update: RefUpdate) -> Iterator[Refusal]:
        push = self._push
        try:
            refusal = find_bad_name(push, update) or find_bad_move(push, update)
        except StoreDamaged as error:
            refusal = Refusal(update.name, error.message, error.hint or "see `git fsck`")
        if refusal is not None:
            yield refusal
        elif update.new is not None and not update.name.startswith(CLAIMS):
            found = list(self._check_content(update, update.new))
            if not found and update.name.startswith((ACTIVE, ARCHIVE)):
                found += filter(None, [self._branches.find_bad_branch(update, update.new)])
            yield from found

    def _check_content(self, update: RefUpdate, tip: Oid) -> Iterator[Refusal]:
        """Check the commits of *tip* that are not stored yet."""
        name, store = update.name, self._push.store
        thread = ThreadId(name.removeprefix(ACTIVE).removeprefix(ARCHIVE))
        if is_thread := name.startswith((ACTIVE, ARCHIVE)):
            claim = Claim(name, thread, tip, "active" if name.startswith(ACTIVE) else "archive")
            findings = self._threads.check(claim, known=store.refs.find(ACTIVE + thread))
        else:
            findings = check_put_ref(self._trees, name, tip, known=store.refs.find(name))
        for finding in islice(findings, _MOST_FINDINGS):
            yield _refuse(name, finding)
        if next(findings, None) is not None:
            hint = f"`uwf verify {name}`, in the store that pushed it, lists them all"
            yield Refusal(name, "there are more problems with it", hint)
        if is_thread:
            known = store.refs.find(ACTIVE + thread) or store.refs.find(ARCHIVE + thread)
            stranger = self._strangers.find(thread, tip, is_known=known is not None)
            if stranger is not None:
                yield Refusal(name, stranger, STRANGER_HINT)


def _refuse(name: str, finding: Finding) -> Refusal:
    told = (hint for start, hint in _OF_FORMATS.items() if finding.hint.startswith(start))
    return Refusal(name, finding.message, next(told, finding.hint))


# pre-receive: judge a push in git's quarantine, in a child process with limits.
#
# A push that cannot be judged is refused. The limits keep a push from occupying the server for
# ever with one regular expression, or from filling its memory.

_MEMORY_BYTES = 1024**3


def check_push(
    git_dir: str, environ: Mapping[str, str], updates: Sequence[RefUpdate]
) -> list[Refusal]:
    """Return why the push in git's quarantine is refused; an empty list accepts it."""
    store = open_received(git_dir, environ)
    limits = read_receive_limits(store.config)
    memory = _MEMORY_BYTES + bytes_to_check(store.objects, limits.most_blob_bytes)
    try:
        told = run_limited(
            lambda: check_received(store, updates),
            limits=RunLimits(memory, limits.timeout_s, limits.timeout_s),
            what="the check of this push",
        )
    except LimitedRunBug as bug:
        # The pusher gets one line; the trace goes into the server's crash log.
        raise RuntimeError("the check of this push broke down") from bug
    return [Refusal(*each) for each in told]


# post-receive: announce the transitions of a push, and delete active refs beside their archives.
#
# The push is done; nothing here can undo it or make it fail. Each transition is announced once,
# the oldest first.

ON_RECEIVE = "uwf.onReceive"

_TIMEOUT_S = 30.0
_MS = 1000


class _Moved(NamedTuple):
    thread: ThreadId
    ref: str
    tip: Oid
    known: Oid | None
    """Its commit before the push; None if the thread is new here."""


def announce_push(
    store: Store, updates: Sequence[RefUpdate], environ: Mapping[str, str]
) -> list[str]:
    """Clean up, and run ``uwf.onReceive`` with JSON lines for 30 s; return warnings."""
    moved = list(_moved_threads(store, updates))
    warnings = [*_delete_archived(store, moved)]
    command = store.config.get(ON_RECEIVE)
    if command and moved:
        warnings += _announce(store, moved, command, environ)
    return warnings


def _moved_threads(store: Store, updates: Sequence[RefUpdate]) -> Iterator[_Moved]:
    """Yield each thread once, whether one of its refs was changed or both."""
    by_name = {update.name: update for update in updates}
    for name, update in by_name.items():
        thread = name.removeprefix(ACTIVE).removeprefix(ARCHIVE)
        if update.new is None or not is_thread_id(thread):
            continue
        active = by_name.get(ACTIVE + thread)
        if name == ARCHIVE + thread:
            known = store.refs.find(ACTIVE + thread) if active is None else active.old
            yield _Moved(ThreadId(thread), name, update.new, known)
        elif name == ACTIVE + thread and ARCHIVE + thread not in by_name:
            yield _Moved(ThreadId(thread), name, update.new, update.old)


def _delete_archived(store: Store, moved: Sequence[_Moved]) -> Iterator[str]:
    """Delete active refs beside their archives, which a plain `git push` leaves."""
    going: dict[str, tuple[Oid | None, Oid | None]] = {}
    for each in moved:
        ref = ACTIVE + each.thread
        try:
            active = store.refs.find(ref) if each.ref.startswith(ARCHIVE) else None
            is_left = active is not None and descends(store.objects, each.tip, active)
        except UwfError as error:
            yield f"{ref} could not be removed beside its archive: {error}"
            continue
        if is_left:
            going[ref] = (active, None)
        elif active is not None:
            # Another push moved it between the check and the end of this one.
            yield (
                f"thread {each.thread} is archived at {each.tip}, and {ref} "
                f"is kept beside it: the archive does not descend from {active}"
            )
    try:
        gone = store.refs.change(going)
    except (UwfError, OSError) as error:
        yield f"{name_some(list(going))} could not be removed beside the archive: {error}"
    else:
        for ref in going.keys() - gone:
            yield f"{ref} moved before it could be removed beside its archive"


def _announce(
    store: Store, moved: Sequence[_Moved], command: str, environ: Mapping[str, str]
) -> Iterator[str]:
    try:
        lines = [line for each in moved for line in _lines(store, each)]
        given = "".join(line + "\n" for line in lines).encode()
        argv = split_command(command)
        ran = run_listener(argv, environ, given=given, cwd=store.path, timeout_s=_TIMEOUT_S)
    except (UwfError, OSError) as error:
        yield f"{ON_RECEIVE}: {error}"
        return
    if ran.status != 0:
        yield f"{ON_RECEIVE}: {argv[0]} ended with status {ran.status}: {ran.last_line}"


def _lines(store: Store, moved: _Moved) -> list[str]:
    new = takewhile(lambda each: each.commit.oid != moved.known, walk_history(store, moved.tip))
    return [json.dumps(view_transition(each, moved.ref)) for each in new][::-1]


def view_transition(snapshot: Snapshot, ref: str) -> dict[str, Any]:
    """Return the JSON document of one transition for ``uwf.onReceive``."""
    record = snapshot.record
    return {
        "event": record.event,
        "thread": record.thread,
        **tell_record(record),
        "commit": snapshot.commit.oid,
        "subject": snapshot.subject,
        "time": snapshot.commit.time_s * _MS,
        "ref": ref,
    }
