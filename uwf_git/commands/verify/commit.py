"""Check one commit of a thread against the one before it.

A part that cannot be read is reported once; nothing is checked against it.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import NamedTuple

from uwf_git.commands.split.remake import is_derived
from uwf_git.commands.verify.derived import check_derived
from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.commands.verify.flow import check_end, check_place
from uwf_git.commands.verify.present import find_lies, fold_next
from uwf_git.commands.verify.signal import check_amend, find_poked
from uwf_git.commands.verify.transition import (
    check_alone,
    check_first,
    check_next,
    check_parents,
    check_person,
    check_status,
)
from uwf_git.commands.verify.tree import NODES, AllowedChange, TreeChecks
from uwf_git.commands.verify.turn import (
    check_attempt,
    check_joined,
    check_signal,
    check_step,
    check_wait,
)
from uwf_git.commands.verify.wording import check_wording
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import BUILTIN, START, WORKFLOW
from uwf_git.model.event_folds import Cause, Standing, begin_state
from uwf_git.model.event_rules import RULES, STEPS, carries
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference
from uwf_git.model.thread import NotAPresent, ThreadState
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.nodes.folders import RAW_FILE_MODE, RAW_TREE_MODE, object_id
from uwf_git.store.nodes.tree import MissingNode
from uwf_git.store.objects.commit import CommitView
from uwf_git.store.objects.message import BadMessage
from uwf_git.store.objects.objects import ObjectStore, get_blob
from uwf_git.store.objects.strict_commit import StrictCommit, read_strict_commit
from uwf_git.store.oid import Oid
from uwf_git.store.threads.message import parse_thread_message
from uwf_git.store.threads.now_file import NowFile, parse_now
from uwf_git.store.threads.snapshot import HEAD_FILE, NOW_FILE, START_FILE, Snapshot

_TOP: Mapping[str, bytes] = {
    HEAD_FILE: RAW_FILE_MODE,
    NODES: RAW_TREE_MODE,
    NOW_FILE: RAW_FILE_MODE,
    START_FILE: RAW_FILE_MODE,
}
# Fields of a StartNode: where a branch begins, which is a derived commit.
_OF_BRANCHES = frozenset({"entry", "parent"})

_REWRITE = (
    "no version of uwf writes such a commit: it was made by hand; another copy of this store "
    "may have the original history: `git fetch`"
)


class Point(NamedTuple):
    """A commit of a thread, as far as it can be read."""

    commit: StrictCommit
    record: TransitionRecord | None
    files: Mapping[str, bytes]
    """The top of its tree: the 20 bytes of each id."""

    now: NowFile | None

    @property
    def view(self) -> CommitView:
        """The commit as read."""
        return self.commit.view

    def snapshot(self, objects: ObjectStore) -> Snapshot | None:
        """Return the thread at the commit; None if its message cannot be read."""
        return None if self.record is None else Snapshot(objects, self.view, self.record)

    @property
    def standing(self) -> Standing | None:
        """Where the thread stands there; None if message or now.json cannot be read."""
        if self.record is None or self.now is None:
            return None
        return Standing(self.record, self.now.present)


class CommitChecks:
    """The commits of one ref, from the oldest to the newest."""

    def __init__(self, trees: TreeChecks, ref: str) -> None:
        self._trees, self._nodes, self._ref = trees, trees.nodes, ref
        self.before: Point | None = None
        """The commit before; None if there is none or it cannot be read."""
        self.is_sound = False
        """Whether that is a derived commit that follows from those before it."""

    def believe(self, oid: Oid) -> None:
        """Take *oid* as the commit before, without checking it."""
        reading = self._read(oid)
        while True:
            try:
                next(reading)
            except StopIteration as done:
                self.before = done.value
                return

    def check(self, oid: Oid, thread: ThreadId | None, *, is_first: bool) -> Iterator[Finding]:
        """Check the next commit, which must be of *thread* if that is known."""
        before = self.before
        self.before = point = yield from self._read(oid)
        self.is_sound = False
        if point is None:
            return
        made = point.snapshot(self._trees.recent)
        follows = made is not None and is_derived(made.record, made.commit)
        self._trees.count(point.commit, is_derived=follows)
        site = Location(self._ref, oid, point.files.get(NODES, b""))
        if made is not None and follows:
            yield from self._check_derived(site, thread, before, made)
            if made.record.event == "join" and self.is_sound:
                yield from check_joined(self._nodes, site, made.record)
            return
        yield from self._check_files(site, before, point)
        yield from self._check_parents(site, before, point)
        record = point.record
        if record is None:
            return
        wrong = list(check_alone(record, thread))
        if is_first:
            wrong += check_first(record)
        elif before is not None and before.record is not None:
            wrong += check_next(before.record, record)
        if not site.nodes:
            yield from (site.finding(each) for each in wrong)
            return
        folding = _Folding(self._fold(site, record, before, point))
        if not wrong:
            wrong += _check_status(before, record, folding.after)
        yield from (site.finding(each) for each in wrong)
        yield from self._check_origin(site, before, record)
        yield from folding.findings
        if point.commit.problem is None:
            last_attempt = None if point.now is None else point.now.present.last_attempt
            yield from check_wording(self._nodes, site, point.commit, record, last_attempt)
        yield from _check_now(site, point, record, folding.after)

    def _check_derived(
        self, site: Location, thread: ThreadId | None, before: Point | None, made: Snapshot
    ) -> Iterator[Finding]:
        record = made.record
        wrong = list(check_alone(record, thread))
        standing = None if before is None else before.standing
        if standing is not None and record.event != "start":
            wrong += check_next(standing.record, record)
            wrong += check_person(standing, record)
        yield from (site.finding(each) for each in wrong)
        problems = list(check_derived(site, made, self._trees.remaking))
        yield from problems
        self.is_sound = not wrong and not problems

    def _read(self, oid: Oid) -> Generator[Finding, None, Point | None]:
        site = Location(self._ref, oid)
        try:
            commit = read_strict_commit(self._trees.recent, oid)
        except StoreDamaged as error:
            yield site.finding(error.message, hint=error.hint)
            return None
        if commit.problem is not None:
            yield site.finding(f"commit {oid} {commit.problem}", hint=_REWRITE)
        record: TransitionRecord | None = None
        try:
            record = parse_thread_message(commit.view.message)
        except BadMessage as error:
            told = error.of_commit(oid)
            yield site.finding(told.message, hint=told.hint)
        tree = bytes.fromhex(commit.view.tree.decode())
        files, troubles = self._trees.open_top(site, tree, _TOP)
        yield from troubles
        now: NowFile | None = None
        if NOW_FILE in files:
            try:
                content = get_blob(self._trees.recent, object_id(files[NOW_FILE]))
                now = parse_now(content)
            except StoreDamaged as error:
                yield site.finding(error.message, hint=error.hint)
            except NotAPresent as error:
                yield site.finding(f"the commit has an invalid now.json: {error}")
        return Point(commit, record, files, now)

    def _check_files(self, site: Location, before: Point | None, point: Point) -> Iterator[Finding]:
        files, record = point.files, point.record
        if site.nodes:
            yield from self._trees.check_nodes(site, self._growth(before))
        start = before.files.get(START_FILE) if before is not None else None
        if start is not None and files.get(START_FILE, start) != start:
            yield site.finding("start.json is another than in the commit before")
        if record is None or not site.nodes:
            return
        try:
            head = self._nodes.find(site, record.node)
        except StoreDamaged:
            return  # reported for the folder
        if head is None:
            message = f"Uwf-Node is {record.node}, which is not in the commit"
            yield site.finding(message, node=record.node)
        elif files.get(HEAD_FILE, head) != head:
            yield site.finding(f"head.json is not the file of node {record.node}", node=record.node)
        if head is not None and record.event == "start" and files.get(START_FILE, head) != head:
            yield site.finding(
                f"start.json is not the file of node {record.node}", node=record.node
            )

    @staticmethod
    def _growth(before: Point | None) -> AllowedChange:
        if before is None:
            return AllowedChange(None)
        is_young = before.record is not None and before.record.event == "start"
        return AllowedChange(before.files.get(NODES), keep_before=is_young)

    @staticmethod
    def _check_parents(site: Location, before: Point | None, point: Point) -> Iterator[Finding]:
        view, record = point.view, point.record
        problem = None if record is None else check_parents(record.event, len(view.parents))
        if problem is not None:
            yield site.finding(problem)
        if before is not None and view.time_s < before.view.time_s:
            parent = before.view.time_s
            yield site.finding(f"its date, {view.time_s}, is before that of its parent, {parent}")

    @staticmethod
    def _check_origin(
        site: Location, before: Point | None, record: TransitionRecord
    ) -> Iterator[Finding]:
        if record.event == "fork" and before is not None and before.record is not None:
            origin = before.record.thread
            if record.forked_from not in {None, origin}:
                yield site.finding(
                    f"Uwf-Forked-From is {record.forked_from}, and the parent is of {origin}"
                )

    def _fold(
        self, site: Location, record: TransitionRecord, before: Point | None, point: Point
    ) -> Generator[Finding, None, list[Standing]]:
        """Check the nodes of the event, and return where it may lead; empty if unknown."""
        event, now = record.event, point.now
        if event == "start":
            state = yield from self._check_start(site, record)
            return [] if state is None else [Standing(record, state)]
        standing = None if before is None else before.standing
        cause = Cause(role=record.role, at=record.at)
        if event in STEPS:
            cause = cause._replace(
                node=(yield from check_step(self._nodes, site, record, _head_of(before)))
            )
        elif event == "attempt" and now is not None:
            cause = cause._replace(
                node=(yield from check_attempt(self._nodes, site, record, now.present))
            )
        elif event == "wait":
            yield from check_wait(self._nodes, site, record)
        elif carries(event, "signal"):
            cause = cause._replace(node=(yield from check_signal(self._nodes, site, record)))
        is_known = cause.node is not None or not RULES[event].has_node
        if before is None or standing is None or not is_known:
            return []
        whole = yield from self._complete(site, before, cause, point)
        if whole is None:
            return []
        after = fold_next(standing, record, whole)
        if event == "amend" and cause.node is not None:
            made = Snapshot(self._trees.recent, point.view, record)
            yield from check_amend(
                self._nodes, site, made, between=(standing, after[0]), signal=cause.node
            )
        return after

    def _complete(
        self, site: Location, before: Point, cause: Cause, point: Point
    ) -> Generator[Finding, None, Cause | None]:
        """Return *cause* with what the history and the flow add to it; None if they are wrong."""
        made, standing = point.snapshot(self._trees.recent), before.standing
        if made is None or standing is None:
            return None
        event = made.record.event
        if RULES[event].has_place:
            return (yield from check_place(site, standing, cause, made))
        if event == "end":
            yield from check_end(site, standing, made)
        if event == "poke":
            objects = self._trees.objects
            poked = yield from find_poked(objects, site, made.record, before.view.oid)
            return None if poked is None else cause._replace(back_to=poked)
        return cause

    def _check_start(
        self, site: Location, record: TransitionRecord
    ) -> Generator[Finding, None, ThreadState | None]:
        try:
            start = self._nodes.get(site, record.node)
            workflow = self._nodes.get(site, record.workflow)
        except MissingNode as error:
            if error.facts["node"] == record.workflow:
                message = f"Uwf-Workflow is {record.workflow}, which is not in the commit"
                yield site.finding(message, node=record.workflow)
            return None
        except StoreDamaged:
            return None  # reported for the commit that added it
        for node, kind, name in ((start, START, "Uwf-Node"), (workflow, WORKFLOW, "Uwf-Workflow")):
            if node.type != kind:
                title = BUILTIN[kind].payload["title"]
                message = f"{name} is {node.hash}, which is no {title}"
                yield site.finding(message, node=node.hash)
                return None
        if find_reference(start.payload["workflow"]) != record.workflow:
            yield site.finding(
                f"Uwf-Workflow is {record.workflow}, and start.json names another",
                node=start.hash,
            )
        depth = start.payload.get("depth", 0)
        if bool(depth) != (record.parent_thread is not None):
            parent = record.parent_thread or "absent"
            message = f"Uwf-Parent-Thread is {parent}, and start.json has depth {depth}"
            yield site.finding(message, node=start.hash)
        for field in sorted(_OF_BRANCHES & start.payload.keys()):
            message = f"start.json has {field}, and the thread began as no branch"
            yield site.finding(message, node=start.hash)
        name = workflow.payload["name"]
        if record.workflow_name != name:
            message = f"Uwf-Workflow-Name is {record.workflow_name!r}, and its name is {name!r}"
            yield site.finding(message, node=workflow.hash)
        return begin_state(start, workflow.payload.get("initialState"))


class _Folding:
    """The findings of a fold, and where it leads."""

    def __init__(self, fold: Generator[Finding, None, list[Standing]]) -> None:
        self.after: list[Standing] = []
        self.findings = list(self._run(fold))

    def _run(self, fold: Generator[Finding, None, list[Standing]]) -> Iterator[Finding]:
        self.after = yield from fold


def _check_status(
    before: Point | None, record: TransitionRecord, after: list[Standing]
) -> Iterator[str]:
    if before is not None and before.standing is not None:
        yield from check_person(before.standing, record)
    if after:
        yield from check_status(record, {each.record.status for each in after})


def _check_now(
    site: Location, point: Point, record: TransitionRecord, after: list[Standing]
) -> Iterator[Finding]:
    if point.now is None:
        return
    said = point.now.present
    if after:
        # Of two, the one that agrees: they differ in what a pause interrupts.
        expected = next((each.state for each in after if each.state == said), after[0].state)
        yield from (site.finding(lie) for lie in find_lies(point.now.document, expected))
        return
    for name, told, present in (
        ("Uwf-Workflow", record.workflow, said.workflow),
        ("Uwf-Depth", record.depth, said.depth),
    ):
        if told != present:
            yield site.finding(f"{name} is {told}, and now.json says {present}")


def _head_of(before: Point | None) -> NodeHash | None:
    return None if before is None or before.record is None else before.record.node
