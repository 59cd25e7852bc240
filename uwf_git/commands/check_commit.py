"""Checking one commit of a thread, held against the one before it.

Owns: what the parts of a thread commit must say of one another.
Knows nothing of: how the history is walked, which ref it is of.
Always true: what cannot be read is told once, and what would have been held against it is not.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from uwf_git.commands.check_amend import check_amend
from uwf_git.commands.check_poke import find_poked
from uwf_git.commands.check_present import (
    BadPresent,
    Now,
    Steered,
    find_lies,
    fold_attempt,
    fold_plain,
    fold_signal,
    fold_start,
    read_now,
)
from uwf_git.commands.check_record import (
    SIGNALLED,
    check_alone,
    check_first,
    check_next,
    check_parents,
)
from uwf_git.commands.check_run import Site
from uwf_git.commands.check_status import check_status
from uwf_git.commands.check_tree import NODES, Growth, TreeChecks
from uwf_git.commands.check_turn import check_attempt, check_signal, check_step
from uwf_git.commands.trouble import Trouble
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import ATTEMPT, BUILTIN, START, WORKFLOW
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference
from uwf_git.model.thread import STEPS, Present
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.commit import CommitView, read_commit
from uwf_git.store.message import BadMessage
from uwf_git.store.node_files import FILE, FOLDER, object_id
from uwf_git.store.node_tree import MissingNode, get_blob
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import HEAD_FILE, NOW_FILE, START_FILE
from uwf_git.store.strict_commit import read_strict_commit
from uwf_git.store.thread_message import parse_thread_message

_TOP: Mapping[str, bytes] = {HEAD_FILE: FILE, NODES: FOLDER, NOW_FILE: FILE, START_FILE: FILE}
_REWRITE = (
    "no version of uwf writes such a commit: somebody made it by hand; another copy of this store "
    "may have the history as it was: `git fetch`"
)
_MERGING = {"join", "split"}


class Point(NamedTuple):
    """A commit of a thread, as far as it can be read."""

    view: CommitView
    record: TransitionRecord | None
    files: Mapping[str, bytes]
    """What its tree has at the top: the 20 bytes of each id."""

    now: Now | None
    """What it says that the thread is."""


class CommitChecks:
    """The commits of one ref, from the oldest to the newest."""

    def __init__(self, trees: TreeChecks, ref: str) -> None:
        self._trees, self._nodes, self._ref = trees, trees.nodes, ref
        self.before: Point | None = None
        """The commit before; None if there is none, or nothing is known of it."""

    def believe(self, oid: Oid) -> None:
        """Take *oid* as the commit before, as far as it can be read."""
        reading = self._read(oid)
        while True:
            try:
                next(reading)
            except StopIteration as done:
                self.before = done.value
                return

    def check(self, oid: Oid, thread: ThreadId | None, *, is_first: bool) -> Iterator[Trouble]:
        """Give what is wrong with the next commit, which has to be of *thread* if that is known."""
        before = self.before
        self.before = point = yield from self._read(oid)
        if point is None:
            return
        site = Site(self._ref, oid, point.files.get(NODES, b""))
        yield from self._check_files(site, before, point)
        yield from self._check_parents(site, before, point)
        record = point.record
        if record is None:
            return
        told = list(check_alone(record, thread))
        if is_first:
            told += check_first(record)
        elif before is not None and before.record is not None:
            told += check_next(before.record, record)
        if site.nodes and not told:
            told += self._check_status(site, before, point)
        yield from (site.trouble(each) for each in told)
        if site.nodes:
            yield from self._check_story(site, before, point, record)

    def _check_status(self, site: Site, before: Point | None, point: Point) -> Iterator[str]:
        record, now = point.record, point.now
        if before is None or before.record is None or before.now is None:
            return
        if record is None or now is None:
            return
        attempt: Node | None = None
        if record.event == "attempt" and now.present.last_attempt is not None:
            # What is wrong with it is told of the turn.
            with suppress(StoreDamaged):
                attempt = self._nodes.get_shared(site, now.present.last_attempt)
        if attempt is None or attempt.type == ATTEMPT:
            yield from check_status(
                (before.record, before.now.present), record, now.present, attempt
            )

    def _read(self, oid: Oid) -> Generator[Trouble, None, Point | None]:
        site = Site(self._ref, oid)
        try:
            commit = read_strict_commit(self._trees.objects, oid)
        except StoreDamaged as error:
            yield site.trouble(error.message, hint=error.hint)
            return None
        if commit.problem is not None:
            yield site.trouble(f"commit {oid} {commit.problem}", hint=_REWRITE)
        record: TransitionRecord | None = None
        try:
            record = parse_thread_message(commit.view.message)
        except BadMessage as error:
            told = error.of_commit(oid)
            yield site.trouble(told.message, hint=told.hint)
        tree = bytes.fromhex(commit.view.tree.decode())
        files, troubles = self._trees.open_top(site, tree, _TOP)
        yield from troubles
        now: Now | None = None
        if NOW_FILE in files:
            try:
                content = get_blob(self._trees.objects, object_id(files[NOW_FILE]))
                now = read_now(content)
            except StoreDamaged as error:
                yield site.trouble(error.message, hint=error.hint)
            except BadPresent as error:
                yield site.trouble(f"the commit has a now.json that is none: {error}")
        return Point(commit.view, record, files, now)

    def _check_files(self, site: Site, before: Point | None, point: Point) -> Iterator[Trouble]:
        files, record = point.files, point.record
        if site.nodes:
            yield from self._trees.check_nodes(site, self._growth(before, record))
        start = before.files.get(START_FILE) if before is not None else None
        if start is not None and files.get(START_FILE, start) != start:
            yield site.trouble("start.json is another than in the commit before")
        if record is None or not site.nodes:
            return
        try:
            head = self._nodes.find(site, record.node)
        except StoreDamaged:
            return  # told of the folder
        if head is None:
            message = f"Uwf-Node is {record.node}, which is not in the commit"
            yield site.trouble(message, node=record.node)
        elif files.get(HEAD_FILE, head) != head:
            yield site.trouble(f"head.json is not the file of node {record.node}", node=record.node)
        if head is not None and record.event == "start" and files.get(START_FILE, head) != head:
            yield site.trouble(
                f"start.json is not the file of node {record.node}", node=record.node
            )

    @staticmethod
    def _growth(before: Point | None, record: TransitionRecord | None) -> Growth:
        if before is None:
            return Growth(None)
        event = None if record is None else record.event
        is_young = before.record is not None and before.record.event == "start"
        return Growth(before.files.get(NODES), may_merge=event in _MERGING, keep_before=is_young)

    def _check_parents(self, site: Site, before: Point | None, point: Point) -> Iterator[Trouble]:
        view, record = point.view, point.record
        problem = None if record is None else check_parents(record.event, len(view.parents))
        if problem is not None:
            yield site.trouble(problem)
        times = [] if before is None else [before.view.time_s]
        for other in view.parents[1:]:
            try:
                times.append(read_commit(self._trees.objects, other).time_s)
            except StoreDamaged as error:
                yield site.trouble(error.message, hint=error.hint)
        if times and view.time_s < max(times):
            yield site.trouble(f"its date, {view.time_s}, is before that of a parent, {max(times)}")

    def _check_story(
        self, site: Site, before: Point | None, point: Point, record: TransitionRecord
    ) -> Iterator[Trouble]:
        if record.event == "fork" and before is not None and before.record is not None:
            origin = before.record.thread
            if record.forked_from not in {None, origin}:
                yield site.trouble(
                    f"Uwf-Forked-From is {record.forked_from}, and the parent is of {origin}"
                )
        expected = yield from self._fold(site, record, before, point.now)
        if point.now is None:
            return
        if expected is not None:
            yield from (site.trouble(lie) for lie in find_lies(point.now.document, expected))
            return
        present = point.now.present
        for name, told, said in (
            ("Uwf-Workflow", record.workflow, present.workflow),
            ("Uwf-Depth", record.depth, present.depth),
        ):
            if told != said:
                yield site.trouble(f"{name} is {told}, and now.json says {said}")

    def _fold(
        self, site: Site, record: TransitionRecord, before: Point | None, now: Now | None
    ) -> Generator[Trouble, None, Present | None]:
        """Give what is wrong with what happened, and the present that it leads to."""
        earlier = None if before is None or before.now is None else before.now.present
        if record.event == "start":
            return (yield from self._check_start(site, record))
        if record.event in STEPS:
            step = yield from check_step(self._nodes, site, record, _head_of(before))
            return None if step is None or earlier is None else earlier.after_step(step.payload)
        if record.event in SIGNALLED:
            return (yield from self._check_signal(site, record, before))
        if now is None:
            return None
        if record.event == "attempt":
            attempt = yield from check_attempt(self._nodes, site, record, now.present)
            if attempt is None or earlier is None:
                return None
            return fold_attempt(earlier, now.present, attempt)
        return None if earlier is None else fold_plain(earlier, record)

    def _check_signal(
        self, site: Site, record: TransitionRecord, before: Point | None
    ) -> Generator[Trouble, None, Present | None]:
        signal = yield from check_signal(self._nodes, site, record)
        if signal is None or before is None or before.record is None or before.now is None:
            return None
        poked: Present | None = None
        if record.event == "poke":
            poked = yield from find_poked(self._trees.objects, site, record, before.view.oid)
        steered = Steered(before.now.present, before.record.status, poked)
        if record.event == "amend":
            yield from check_amend(self._nodes, site, record, steered=steered, signal=signal)
        return fold_signal(steered, record.event, signal.payload)

    def _check_start(
        self, site: Site, record: TransitionRecord
    ) -> Generator[Trouble, None, Present | None]:
        try:
            start = self._nodes.get(site, record.node)
            workflow = self._nodes.get(site, record.workflow)
        except MissingNode as error:
            if error.facts["node"] == record.workflow:
                message = f"Uwf-Workflow is {record.workflow}, which is not in the commit"
                yield site.trouble(message, node=record.workflow)
            return None
        except StoreDamaged:
            return None  # told where it came in
        for node, kind, name in ((start, START, "Uwf-Node"), (workflow, WORKFLOW, "Uwf-Workflow")):
            if node.type != kind:
                title = BUILTIN[kind].payload["title"]
                message = f"{name} is {node.hash}, which is no {title}"
                yield site.trouble(message, node=node.hash)
                return None
        if find_reference(start.payload["workflow"]) != record.workflow:
            yield site.trouble(
                f"Uwf-Workflow is {record.workflow}, and start.json names another",
                node=start.hash,
            )
        name = workflow.payload["name"]
        if record.workflow_name != name:
            message = f"Uwf-Workflow-Name is {record.workflow_name!r}, and its name is {name!r}"
            yield site.trouble(message, node=workflow.hash)
        return fold_start(start, workflow)


def _head_of(before: Point | None) -> NodeHash | None:
    return None if before is None or before.record is None else before.record.node
