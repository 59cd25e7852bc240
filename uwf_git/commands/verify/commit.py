"""Check a commit of a thread: may it follow the commit before, and is it what its event makes.

A part that cannot be read is reported once; nothing is checked against it. Only a commit that may
follow is compared with what was made: causes before consequences.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import NamedTuple, TypeVar

from uwf_git.commands.split.commits import SplitRefused, find_container, is_derived
from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.commands.verify.making import (
    CannotBe,
    Making,
    Way,
    check_parents,
    check_person,
    check_record,
)
from uwf_git.commands.verify.rebuild import HAND_MADE, Made, compare
from uwf_git.commands.verify.tree import NODES, TreeChecks
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.event_folds import Standing
from uwf_git.model.event_rules import STEPS
from uwf_git.model.flow import NotAPosition
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.thread import NotAPresent, ThreadState, TransitionRecord
from uwf_git.model.workflow import NotAWorkflow
from uwf_git.store.nodes.folders import RAW_FILE_MODE, RAW_TREE_MODE, object_id
from uwf_git.store.objects.commit import CommitView
from uwf_git.store.objects.message import BadMessage
from uwf_git.store.objects.objects import ObjectStore, get_blob
from uwf_git.store.objects.strict_commit import StrictCommit, read_strict_commit
from uwf_git.store.oid import Oid
from uwf_git.store.threads.message import parse_now, parse_thread_message
from uwf_git.store.threads.snapshot import HEAD_FILE, NOW_FILE, START_FILE, Snapshot

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
    def is_start(self) -> bool:
        return self.record is not None and self.record.event == "start"

    def snapshot(self, objects: ObjectStore) -> Snapshot | None:
        return None if self.record is None else Snapshot(objects, self.view, self.record)

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
        before, self.is_sound = self.before, False
        point = yield from self._read(oid)
        made = None
        if point is not None:
            made = yield from self._check(oid, thread, before, point, is_first=is_first)
            point = yield from self._settle(point, made)
        self.before = point

    def _check(
        self,
        oid: Oid,
        thread: ThreadId | None,
        before: Point | None,
        point: Point,
        *,
        is_first: bool,
    ) -> Generator[Finding, None, Made | None]:
        record, made = point.record, point.snapshot(self._trees.recent)
        follows = record is not None and is_derived(record, point.view)
        self._trees.count(point.commit, is_derived=follows)
        site = Location(self._ref, oid, point.files.get(NODES, b""))
        if record is not None and made is not None and follows:
            yield from self._check_derived(site, thread, before, point, made)
            return None
        if before is not None and point.view.time_s < before.view.time_s:
            told = f"its date, {point.view.time_s}, is before that of its parent, "
            yield site.finding(f"{told}{before.view.time_s}")
        added: list[NodeHash] = []
        if site.nodes:
            nodes = None if before is None else before.files.get(NODES)
            is_young = before is not None and before.is_start
            yield from self._trees.check_nodes(site, nodes, added, keep_before=is_young)
        if record is None or made is None:
            return None
        wrong = list(check_record(None if before is None else before.record, record, thread))
        wrong += check_parents(record.event, len(point.view.parents))
        if is_first and record.event != "start":
            wrong.append(f"Uwf-Event is {record.event}, and a history begins with start")
        yield from (site.finding(each) for each in wrong)
        if wrong or point.now is None or point.files.keys() != _TOP.keys():
            return None
        standing = None if before is None else before.standing
        start = point.files[START_FILE]
        making = Making(self._trees, site, point.view, record, start, standing)
        return (yield from self._check_made(before, point, making, added))

    def _read(self, oid: Oid) -> Generator[Finding, None, Point | None]:
        site = Location(self._ref, oid)
        try:
            commit = read_strict_commit(self._trees.recent, oid)
        except StoreDamaged as error:
            yield site.finding(error.message, hint=error.hint)
            return None
        if commit.problem is not None:
            yield site.finding(f"commit {oid} {commit.problem}", hint=HAND_MADE)
        record: TransitionRecord | None = None
        try:
            record = parse_thread_message(commit.view.message)
        except BadMessage as error:
            told = error.of_commit(oid)
            yield site.finding(told.message, hint=told.hint)
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
        if made is not None and made.now == point.now:
            return point._replace(state=made.standing.state)
        if point.now is None:
            return point
        try:
            return point._replace(state=parse_now(point.now).present)
        except NotAPresent as error:
            site = Location(self._ref, point.view.oid)
            yield site.finding(f"the commit has an invalid now.json: {error}")
            return point

    def _check_derived(
        self,
        site: Location,
        thread: ThreadId | None,
        before: Point | None,
        point: Point,
        made: Snapshot,
    ) -> Iterator[Finding]:
        standing = None if before is None else before.standing
        start = point.files.get(START_FILE, b"")
        making = Making(self._trees, site, made.commit, made.record, start, standing)
        record = made.record
        wrong = list(check_record(None, record, thread))
        if standing is not None and record.event != "start":
            wrong = list(check_record(standing.record, record, thread))
            wrong += check_person(standing, record)
            if record.event == "split":
                wrong += self._check_way(making, standing, made)
        wrong += self._compare_derived(made)
        yield from (site.finding(each, hint=HAND_MADE) for each in wrong)
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

    def _compare_derived(self, made: Snapshot) -> Iterator[str]:
        event = made.record.event
        try:
            expected = self._trees.remaking.remake(made)
        except SplitRefused as error:
            yield f"there can be no such {event}: {error.message}"
        except (Refused, StoreDamaged) as error:
            yield f"the {event} does not follow: {error.message}"
        except NotAPosition:
            yield f"the {event} follows a thread that begins at no place"
        else:
            if expected != made.commit.oid:
                yield f"the {event} is not the one that follows, which is {expected}"

    def _check_joined(self, making: Making) -> Iterator[Finding]:
        """Check the meta of a join against the role of the graph that its branch played."""
        try:
            workflow = self._nodes.get_shared(making.site, making.record.workflow)
            if "moderator" in workflow.payload:
                yield from self._check_meta(making, workflow.hash)
        except StoreDamaged:
            return  # told for the join

    def _check_meta(self, making: Making, workflow: NodeHash) -> Iterator[Finding]:
        step = self._nodes.get(making.site, making.record.cause or making.record.node)
        schema = making.find_schema(workflow, step.payload["role"])
        if schema is not None:
            part, meta = (step.hash, "meta"), step.payload["meta"]
            yield from self._nodes.check_part(making.site, part, schema=schema, value=meta)

    def _check_made(
        self, before: Point | None, point: Point, making: Making, added: list[NodeHash]
    ) -> Generator[Finding, None, Made | None]:
        site, record = making.site, making.record
        yield from self._check_files(site, before, point, record)
        made: Made | None = None
        try:
            made = making.make()
            if made is not None and making.before is not None and record.event in STEPS:
                yield from self._check_meta(making, making.before.state.workflow)
        except CannotBe as error:
            yield from (site.finding(each, node=error.node) for each in error.problems)
        except (NotAWorkflow, NotAPosition) as error:
            yield site.finding(str(error), hint=HAND_MADE)
        except StoreDamaged:
            pass  # told as the nodes of this commit, or of the one that added them, were checked
        else:
            if made is None:
                yield from _compare_within(site, record, _last(self._settle(point, None)).state)
        if made is not None and point.now is not None:
            left = [each for each in added if record.event != "start" or each not in BUILTIN]
            yield from self._trees.check_needed(site, record.cause, left)
            yield from compare(site, point.commit, point.now, made)
        return made

    def _check_files(
        self, site: Location, before: Point | None, point: Point, record: TransitionRecord
    ) -> Iterator[Finding]:
        files = point.files
        start = None if before is None else before.files.get(START_FILE)
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


def _last(reading: Generator[Finding, None, _Read]) -> _Read:
    """Return what *reading* returns; what it finds was told when the commit came."""
    while True:
        try:
            next(reading)
        except StopIteration as done:
            value: _Read = done.value
            return value


def _compare_within(
    site: Location, record: TransitionRecord, state: ThreadState | None
) -> Iterator[Finding]:
    """Compare what a commit says twice: all that is known of one that follows from an unknown."""
    if state is not None and record.depth != state.depth:
        yield site.finding(f"Uwf-Depth is {record.depth}, and now.json says {state.depth}")
    if state is not None and record.workflow != state.workflow:
        yield site.finding(f"Uwf-Workflow is {record.workflow}, and now.json says {state.workflow}")
