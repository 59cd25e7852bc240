"""Check a thread: its ref, and each commit of its history, oldest first.

One walk back collects the ids; then each commit is read once, and of its tree only what differs
from the one before. Nothing is written; damage is a finding.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from typing import Literal, NamedTuple, TypeVar

from uwf_git.commands.split import Remaking, SplitRefused, find_container, find_split, is_derived
from uwf_git.commands.verify.history import (
    Finding,
    History,
    KnownHeads,
    Location,
    check_end,
    find_old_format,
    walk_back,
)
from uwf_git.commands.verify.making import (
    HAND_MADE,
    CannotBe,
    Made,
    Making,
    Way,
    check_parents,
    check_person,
    check_record,
    compare,
    write_anew,
)
from uwf_git.commands.verify.nodes import NODES, TreeChecks
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.event_folds import Standing
from uwf_git.model.event_rules import STEPS
from uwf_git.model.flow import NotAPosition
from uwf_git.model.names import NodeHash, Oid, ThreadId
from uwf_git.model.node import NotCanonical, canonical
from uwf_git.model.thread import ENDED, NotAPresent, ThreadState, TransitionRecord, parse_present
from uwf_git.model.workflow import NotAWorkflow
from uwf_git.store.lookup import RAW_FILE_MODE, RAW_TREE_MODE, object_id
from uwf_git.store.nodes import FILE_MODE
from uwf_git.store.objects.commit import BadMessage, CommitView, encode_json, is_descendant
from uwf_git.store.objects.objects import get_blob
from uwf_git.store.objects.strict import StrictCommit, read_strict_commit
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.history import (
    HEAD_FILE,
    NOW_FILE,
    START_FILE,
    Snapshot,
    parse_now,
    parse_thread_message,
    read_at,
)

# Check a commit of a thread: may it follow the commit before, and is it what its event makes.
#
# A part that cannot be read is reported once; nothing is checked against it. Only a commit that
# may follow is compared with what was made: causes before consequences.

_TOP: Mapping[str, bytes] = {
    HEAD_FILE: RAW_FILE_MODE,
    NODES: RAW_TREE_MODE,
    NOW_FILE: RAW_FILE_MODE,
    START_FILE: RAW_FILE_MODE,
}
_Read = TypeVar("_Read")


class Point(NamedTuple):
    commit: StrictCommit
    record: TransitionRecord | None
    files: Mapping[str, bytes]
    """The top of its tree: the 20 bytes of each id."""

    now: bytes | None

    state: ThreadState | None
    """What that says; None if it is not read yet, or cannot be."""

    @property
    def view(self) -> CommitView:
        return self.commit.view

    @property
    def standing(self) -> Standing | None:
        """Where the thread says that it stands there; None if message or now.json is damaged."""
        if self.record is None or self.state is None:
            return None
        return Standing(self.record, self.state, self.view.oid)


class CommitChecks:
    def __init__(self, trees: TreeChecks, ref: str) -> None:
        self._trees, self._nodes, self._ref = trees, trees.nodes, ref
        self.before: Point | None = None
        """The commit before; None if it is missing or cannot be read."""
        self.is_sound = False
        """Whether that is a derived commit that follows from those before it."""

    def believe(self, oid: Oid) -> None:
        """Take *oid* as the commit before, without checking it."""
        point = _last(self._read(oid))
        self.before = None if point is None else _last(self._settle(point, None))

    def check(self, oid: Oid, thread: ThreadId | None, *, is_first: bool) -> Iterator[Finding]:
        self.is_sound = False
        point = yield from self._read(oid)
        if point is not None:
            made = yield from self._check(thread, point, is_first=is_first)
            self._trees.count(point.commit, is_derived=self.is_sound)
            point = yield from self._settle(point, made)
        self.before = point

    def _check(
        self, thread: ThreadId | None, point: Point, *, is_first: bool
    ) -> Generator[Finding, None, Made | None]:
        before, record = self.before, point.record
        site = Location(self._ref, point.view.oid, point.files.get(NODES, b""))
        standing = None if before is None else before.standing
        start = point.files.get(START_FILE, b"")
        making = record and Making(self._trees, site, point.view, record, start, standing)
        if making is not None and is_derived(making.record, point.view):
            yield from self._check_derived(making, thread)
            return None
        if before is not None and point.view.time_s < before.view.time_s:
            told = f"its date, {point.view.time_s}, is before that of its parent, "
            yield site.finding(f"{told}{before.view.time_s}")
        added: list[NodeHash] = []
        if site.nodes:
            nodes = None if before is None else before.files.get(NODES)
            last = None if before is None else before.record
            is_young = last is not None and last.event == "start"
            if record is not None and (last is None or last.workflow != record.workflow):
                self._trees.recall(record.workflow_name)
            yield from self._trees.check_nodes(site, nodes, added, keep_before=is_young)
        if record is None or making is None:
            return None
        wrong = list(check_record(None if before is None else before.record, record, thread))
        wrong += check_parents(record.event, len(point.view.parents))
        if is_first and record.event != "start":
            wrong.append(f"Uwf-Event is {record.event}, and a history begins with start")
        yield from (site.finding(each) for each in wrong)
        if wrong or point.now is None or point.files.keys() != _TOP.keys():
            return None
        return (yield from self._check_made(point, making, added))

    def _read(self, oid: Oid) -> Generator[Finding, None, Point | None]:
        site = Location(self._ref, oid)
        try:
            commit = read_strict_commit(self._trees.recent, oid)
        except StoreDamaged as error:
            yield site.finding(error.message, hint=error.hint)
            return None
        record: TransitionRecord | None = None
        try:
            record = parse_thread_message(commit.view.message)
        except BadMessage as error:
            told = error.of_commit(oid)
            yield site.finding(told.message, hint=told.hint)
        if commit.problem is not None:
            yield site.finding(f"commit {oid} {commit.problem}", hint=HAND_MADE)
        tree = bytes.fromhex(commit.view.tree.decode())
        files, troubles = self._trees.open_top(site, tree, _TOP)
        yield from troubles
        now: bytes | None = None
        if NOW_FILE in files:
            try:
                now = get_blob(self._trees.recent, object_id(files[NOW_FILE]))
            except StoreDamaged as error:
                yield site.finding(error.message, hint=error.hint)
        return Point(commit, record, files, now, None)

    def _settle(self, point: Point, made: Made | None) -> Generator[Finding, None, Point]:
        """Return *point* with the state that it claims, which is read if it is not as *made*."""
        if point.now is None:
            return point
        try:
            if made is None or made.now != point.now:
                return point._replace(state=parse_now(point.now).present)
            # Each number may be too large for a reader; the state is long, and can be read.
            state = made.standing.state
            parse_present(canonical({**state.as_document(), "state": {}}))
            return point._replace(state=state)
        except (NotAPresent, NotCanonical) as error:
            site = Location(self._ref, point.view.oid)
            yield site.finding(f"the commit has an invalid now.json: {error}")
            return point

    def _check_derived(self, making: Making, thread: ThreadId | None) -> Iterator[Finding]:
        record, before = making.record, making.before
        made = Snapshot(self._trees.recent, making.view, record)
        if before is None or record.event == "start":
            wrong = list(check_record(None, record, thread))
        else:
            wrong = [*check_record(before.record, record, thread), *check_person(before, record)]
            if record.event == "split":
                wrong += self._check_way(making, before, made)
        hint: str | None = HAND_MADE
        try:
            wrong += compare_derived(self._trees.remaking, made)
        except StoreDamaged as error:
            wrong.append(f"the {record.event} cannot be checked: {error.message}")
            hint = error.hint
        yield from (making.site.finding(each, hint=hint) for each in wrong)
        self.is_sound = not wrong
        if record.event == "join" and self.is_sound:
            yield from self._check_joined(making)

    def _check_way(self, making: Making, before: Standing, made: Snapshot) -> Iterator[str]:
        """List why the thread cannot come to the place at which it splits."""
        try:
            container = find_container(made, made.record.at or "")
            way = Way(before, *making.read_rules(before.state.workflow))
            problem = way.find_move_problem(container.at)
        except (Refused, StoreDamaged, NotAPosition):
            return  # the split cannot be made again, which is told
        if problem is not None:
            yield problem

    def _check_joined(self, making: Making) -> Iterator[Finding]:
        """Check the meta of a join against the role of the graph that its branch played."""
        with suppress(StoreDamaged):  # told for the join
            workflow = self._nodes.get_shared(making.site, making.record.workflow)
            if "moderator" in workflow.payload:
                yield from self._check_meta(making, workflow.hash)

    def _check_meta(self, making: Making, workflow: NodeHash) -> Iterator[Finding]:
        step = self._nodes.get(making.site, making.record.cause or making.record.node)
        if (schema := making.find_schema(workflow, step.payload["role"])) is not None:
            part, meta = (step.hash, "meta"), step.payload["meta"]
            yield from self._nodes.check_part(making.site, part, schema=schema, value=meta)

    def _check_made(
        self, point: Point, making: Making, added: list[NodeHash]
    ) -> Generator[Finding, None, Made | None]:
        site, record = making.site, making.record
        yield from self._check_files(site, point.files, record)
        if record.event == "start":
            yield from self._trees.check_builtin(site, added)
        made: Made | None = None
        try:
            made = making.make()
            if made is None:
                # All that is known of what follows from an unknown is what it says twice.
                state = _last(self._settle(point, None)).state
                if state is not None and record.depth != state.depth:
                    told = f"Uwf-Depth is {record.depth}, and now.json says {state.depth}"
                    yield site.finding(told)
                if state is not None and record.workflow != state.workflow:
                    told = f"Uwf-Workflow is {record.workflow}, and now.json says {state.workflow}"
                    yield site.finding(told)
            elif making.before is not None and record.event in STEPS:
                yield from self._check_meta(making, making.before.state.workflow)
        except CannotBe as error:
            yield from (site.finding(each, node=error.node) for each in error.problems)
        except (NotAWorkflow, NotAPosition) as error:
            yield site.finding(str(error), hint=HAND_MADE)
        except StoreDamaged:
            pass  # told as the nodes of this commit, or of the one that added them, were checked
        if made is not None and point.now is not None:
            yield from self._trees.check_needed(site, record.cause, added)
            yield from compare(site, point.commit, point.now, made)
        return made

    def _check_files(
        self, site: Location, files: Mapping[str, bytes], record: TransitionRecord
    ) -> Iterator[Finding]:
        start = None if self.before is None else self.before.files.get(START_FILE)
        if record.event != "start" and start is not None and files[START_FILE] != start:
            yield site.finding("start.json is another than in the commit before")
        try:
            head = self._nodes.find(site, record.node)
        except StoreDamaged:
            return  # told as the folder was compared
        if head is None:
            message = f"Uwf-Node is {record.node}, which is not in the commit"
            yield site.finding(message, node=record.node)
            return
        for name in (HEAD_FILE, START_FILE) if record.event == "start" else (HEAD_FILE,):
            if files[name] != head:
                message = f"{name} is not the file of node {record.node}"
                yield site.finding(message, node=record.node)


def compare_derived(remaking: Remaking, made: Snapshot) -> Iterator[str]:
    """Yield how a derived commit differs from the one that follows from those before it."""
    event = made.record.event
    try:
        expected = remaking.remake(made)
    except Refused as error:
        yield f"there can be no such {event}: {error.message}"
    except NotAPosition:
        yield f"the {event} follows a thread that begins at no place"
    else:
        oid = made.commit.oid
        if expected.oid != oid:
            entry = made.get_entry(NOW_FILE)
            now = encode_json(expected.new.present.as_document())
            if write_anew(get_blob(made.objects, entry)) == now:
                expected.draft.tree[NOW_FILE.encode()] = (FILE_MODE, entry)
            if expected.oid != oid:
                yield f"the {event} is not the one that follows, which is {expected.oid}"


def judge_derived() -> Callable[[Snapshot], bool]:
    """Return what tells of derived commits whether each follows from those before it."""
    remaking = Remaking()

    def follows(made: Snapshot) -> bool:
        with suppress(StoreDamaged):
            return not any(compare_derived(remaking, made))
        return False

    return follows


def _last(reading: Generator[Finding, None, _Read]) -> _Read:
    """Return what *reading* returns; what it finds was told when the commit came."""
    while True:
        try:
            next(reading)
        except StopIteration as done:
            value: _Read = done.value
            return value


RefKind = Literal["active", "archive", "kept"]

_FOREIGN = (
    "see it with `git log {commit}`; another copy of this store knows where the thread is: "
    "`uwf fetch`"
)
_REWRITTEN = (
    "history is never rewritten: fetch, go on from the newest commit, and push that; "
    "`uwf thread fork` makes a thread of its own of what differs"
)
_FORGED_JOIN = (
    "`uwf fetch` shows both sides; `git log {commit}` shows what was joined: branches are never "
    "replaced, and `uwf thread fork` continues one of another history"
)
_MISPLACED = (
    "leave this ref out of the push; `uwf verify`, in the store that has it, says how to move it"
)


class Claim(NamedTuple):
    ref: str
    thread: ThreadId
    tip: Oid
    place: RefKind
    split: Oid | None = None
    """Of a branch that another thread joins: where it must have begun."""

    is_own: bool = True
    """Of a branch: the thread of the ref joins the branch, not its fork's origin."""

    move: Callable[[], str] = lambda: _MISPLACED
    """Tells what to do if the thread belongs in the other folder."""


def check_thread(
    store: Store, thread: ThreadId, tip: Oid, *, archived: bool, known: Oid | None = None
) -> Iterator[Finding]:
    place: RefKind = "archive" if archived else "active"
    ref = (ARCHIVE if archived else ACTIVE) + thread
    checks = ThreadChecks(TreeChecks(store))
    yield from checks.check(Claim(ref, thread, tip, place), known=known)
    yield from checks.finish()


class ThreadChecks:
    """The threads of one run; what two of them share is checked once.

    With *heads*, what threads share with those refs is trusted: it was checked when it came.
    *judge* says what else is wrong with a branch that a thread joins; it is not asked of what a
    fork shares with the thread that it was forked from.
    """

    def __init__(
        self,
        trees: TreeChecks,
        heads: KnownHeads | None = None,
        judge: Callable[[Claim], str | None] | None = None,
    ) -> None:
        self._objects, self._trees = trees.recent, trees
        self._heads, self._judge = heads, judge
        self._seen: set[Oid] = set()
        self._believed: tuple[Oid, Point | None] | None = None

    def check(self, claim: Claim, *, known: Oid | None = None) -> Iterator[Finding]:
        """Check the history of *claim* and branches it joins; some findings come at ``finish``."""
        if (old := find_old_format(self._objects, claim.ref, claim.tip)) is not None:
            yield old
            return
        waiting = [(claim, known)]
        while waiting:
            each, last = waiting.pop()
            for joined in self._check_one(each, last):
                if isinstance(joined, Finding):
                    yield joined
                else:
                    waiting.append((joined, None))

    def _check_one(self, claim: Claim, known: Oid | None) -> Iterator[Finding | Claim]:
        """Check one thread; yield the branches that it joins as well."""
        heads = self._heads
        here = None if heads is None else heads.find(claim.thread)
        history = walk_back(
            self._objects,
            claim.tip,
            # The split comes before the join, so it was checked, or is trusted.
            {known, here, claim.split},
            (lambda _oid: False) if heads is None else heads.has,
            self._seen,
        )
        target, hints = (claim.ref, claim.tip), (_FOREIGN, _REWRITTEN)
        yield from check_end(self._objects, history, target, known, hints)
        split, tip = claim.split, claim.tip
        if split and split != history.behind and not is_descendant(self._objects, tip, split):
            problem = f"it did not begin at {split}, where the thread split"
            yield _bad_join(claim, claim.thread, claim.tip, problem)
        commits = CommitChecks(self._trees, claim.ref)
        if history.behind is not None:
            self._believe(commits, history.behind)
        record = None if commits.before is None else commits.before.record
        behind = None if record is None else record.thread
        owner = _owner(claim, history, behind)
        if owner != claim.thread:
            yield _trouble(claim, f"{claim.ref} points at a commit of thread {owner}", _FOREIGN)
        owners = [owner, *history.beginnings[1:]]
        oldest = history.commits[-1] if history.commits else None
        yield from _check_forks(claim, history, behind, owners[-1])
        has_beginning = history.behind is None and history.damage is None
        is_judged = True
        for oid in reversed(history.commits):
            if oid in history.forks and oid != oldest:
                owners.pop()
            yield from commits.check(oid, owners[-1], is_first=has_beginning and oid == oldest)
            is_own = claim.is_own and owners[-1] == claim.thread
            if commits.is_sound and commits.before is not None:
                for found in self._find_joined(claim, commits.before, is_own=is_own):
                    is_judged &= is_own or self._judge is None
                    yield found
            if is_judged or is_own:
                # Else the thread itself may come in the same push, and is judged then.
                self._seen.add(oid)
        yield from _check_status(claim, commits.before)

    def _believe(self, commits: CommitChecks, oid: Oid) -> None:
        """Take *oid* as the commit before; of many branches one after the other it is the same."""
        if self._believed is None or self._believed[0] != oid:
            commits.believe(oid)
            self._believed = (oid, commits.before)
        commits.before = self._believed[1]

    def _find_joined(
        self, claim: Claim, point: Point, *, is_own: bool
    ) -> Iterator[Finding | Claim]:
        """Yield the branches that the sound commit at *point* joins, if any, and their troubles."""
        if point.record is None or point.record.event != "join":
            return
        try:
            split = find_split(read_at(self._objects, point.view.parents[0])).commit.oid
        except (SplitRefused, StoreDamaged) as error:
            yield _trouble(claim, error.message, _FOREIGN, commit=point.view.oid)
            return
        for oid in point.view.parents[1:]:
            thread = read_at(self._objects, oid).record.thread
            joined = Claim(claim.ref, thread, oid, "kept", split, is_own)
            problem = self._judge(joined) if is_own and self._judge is not None else None
            if problem is not None:
                yield _bad_join(claim, joined.thread, oid, problem)
            yield joined

    def finish(self) -> Iterator[Finding]:
        yield from self._trees.nodes.finish()


def _bad_join(claim: Claim, branch: ThreadId, tip: Oid, problem: str) -> Finding:
    message = f"the join of branch {branch} at {tip} cannot be: {problem}"
    return _trouble(claim, message, _FORGED_JOIN, commit=tip)


def _check_status(claim: Claim, last: Point | None) -> Iterator[Finding]:
    if last is None or last.record is None or last.view.oid != claim.tip:
        return
    status = last.record.status
    has_ended = status in ENDED
    if claim.place == ("active" if has_ended else "archive"):
        where = "is active" if has_ended else "is in the archive"
        told = f"the thread has {'ended' if has_ended else 'not ended'}: it is {status}"
        yield _trouble(claim, f"{claim.ref} {where}, and {told}", claim.move())


def _check_forks(
    claim: Claim, history: History, behind: ThreadId | None, owner: ThreadId | None
) -> Iterator[Finding]:
    """Check that each thread begins by a fork, and once; *owner* is that of the oldest commit."""
    oldest, passed = history.commits[-1] if history.commits else None, list(history.beginnings)
    if oldest in history.forks:
        passed.append(behind)
    elif oldest is not None and behind not in {None, owner}:
        message = f"commit {oldest} goes on from one of thread {behind}, and is no fork"
        yield _trouble(claim, message, _FOREIGN, commit=oldest)
    twice = next((each for each in passed if each and passed.count(each) > 1), None)
    if twice is not None:
        yield _trouble(claim, f"{claim.ref} comes back to thread {twice} by a fork", _FOREIGN)


def _owner(claim: Claim, history: History, behind: ThreadId | None) -> ThreadId:
    """Return the thread of the newest commits: another than the ref's only if both ends name it."""
    newest = history.tip if history.commits else behind
    oldest = history.beginnings[0] if history.commits else behind
    return newest if newest is not None and newest == oldest else claim.thread


def _trouble(claim: Claim, message: str, hint: str, *, commit: Oid | None = None) -> Finding:
    told = commit or claim.tip
    return Finding(message, hint.format(commit=told), claim.ref, told)
