"""Check the commits of puts: versions of workflows with their files, and nodes put by hand.

What both have in common: a chain of commits, each with its own `nodes/`. One walk back collects the
ids; one pass from the oldest to the newest checks them.
Format: FORMAT.md, "The tree of a workflow commit".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from uwf_git.commands.verify.history import Finding, Location, check_end, find_old_format, walk_back
from uwf_git.commands.verify.making import find_author_problem, list_wrong
from uwf_git.commands.verify.nodes import NODES, TreeChecks
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import WORKFLOW, find_reference
from uwf_git.model.names import NodeHash, Oid, is_node_hash
from uwf_git.model.node import Node
from uwf_git.model.workflow import END, parse_flow_node, parse_graph
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.model.yaml_reader import (
    MAX_FILES,
    MAX_PATH,
    BadYaml,
    CannotInclude,
    Includes,
    parse_yaml,
)
from uwf_git.store import workflows
from uwf_git.store.lookup import (
    NODES_REF,
    RAW_FILE_MODE,
    RAW_TREE_MODE,
    TreeEntry,
    build_put_message,
    nodes_at,
    object_id,
)
from uwf_git.store.objects.commit import (
    BadMessage,
    CommitView,
    body_of,
    parse_trailers,
    read_commit,
)
from uwf_git.store.objects.objects import get_blob
from uwf_git.store.objects.strict import StrictCommit, read_strict_commit
from uwf_git.store.store import Store

_BY_HAND = "no version of uwf writes such a commit: it was made by hand"
_INCLUDED = (
    "no version of uwf writes such a commit; `uwf workflow put FILE` writes what FILE includes, "
    "and nothing else"
)
_REWRITTEN = "history is never rewritten: fetch, put it again on the newest version, and push that"
# Each folder takes a name of at least one letter, and a slash.
_DEEPEST = MAX_PATH // 2


class Put(NamedTuple):
    site: Location
    trailers: Mapping[str, str]
    files: Mapping[str, bytes]
    others: Mapping[bytes, TreeEntry]

    view: CommitView
    added: Sequence[NodeHash]
    """The nodes that it has, and the commit before had not; of a workflow all."""


def check_puts(store: Store, puts: Iterable[tuple[str, Oid, Oid | None]]) -> Iterator[Finding]:
    """Check refs of workflows and of nodes, each from its tip to a trusted commit or the first."""
    trees = TreeChecks(store)
    for ref, tip, known in puts:
        yield from check_put_ref(trees, ref, tip, known=known)
    yield from trees.nodes.finish()


def check_put_ref(
    trees: TreeChecks, ref: str, tip: Oid, *, known: Oid | None = None
) -> Iterator[Finding]:
    """Check one ref within a larger run; some findings come only when *trees* finishes."""
    yield from (_Puts if ref == NODES_REF else _Versions)(trees, ref).check(tip, known)


class _Puts:
    """The commits of one ref; of nodes put by hand, unless a subclass says otherwise."""

    top: Mapping[str, bytes] = {NODES: RAW_TREE_MODE}
    """The entries at the top of the tree: name to mode."""

    events: tuple[str, ...] = ("put",)

    is_whole = False
    """Each tree is whole: it may lose nodes, and have other entries, which *judge* checks."""

    def __init__(self, trees: TreeChecks, ref: str) -> None:
        self._trees, self._ref = trees, ref

    def judge(self, _put: Put) -> Iterator[Finding]:
        return iter(())

    def make_message(self, put: Put) -> bytes | None:
        """Make the message again; None if that cannot be, which *judge* tells."""
        return build_put_message(put.added)

    def check(self, tip: Oid, known: Oid | None) -> Iterator[Finding]:
        """Check the commits from *tip* back to *known*, exclusive."""
        trees, ref = self._trees, self._ref
        if (old := find_old_format(trees.objects, ref, tip)) is not None:
            yield old
            return
        history = walk_back(trees.objects, tip, set() if known is None else {known})
        yield from check_end(trees.objects, history, (ref, tip), known, (_BY_HAND, _REWRITTEN))
        before = None if history.behind is None else nodes_at(trees.objects, history.behind)
        time_s, is_known = 0, history.damage is None
        for oid in reversed(history.commits):
            # The message names what was added: it is told only where the commit before is known.
            can_tell, is_known = is_known, False
            site = Location(ref, oid)
            try:
                commit = read_strict_commit(trees.objects, oid)
            except StoreDamaged as error:
                yield site.finding(error.message, hint=error.hint)
                continue
            trees.count(commit)
            yield from _check_commit(site, commit, time_s)
            time_s = commit.view.time_s
            others: dict[bytes, TreeEntry] = {}
            tree, rest = bytes.fromhex(commit.view.tree.decode()), others if self.is_whole else None
            files, troubles = trees.open_top(site, tree, self.top, others=rest)
            yield from troubles
            if NODES not in files:
                continue
            site = site._replace(nodes=files[NODES])
            added: list[NodeHash] = []
            yield from trees.check_nodes(site, None if self.is_whole else before, added)
            before, is_known = files[NODES], True
            put = Put(site, {}, files, others, commit.view, added)
            yield from self._check_message(put, can_tell=can_tell)

    def _check_message(self, put: Put, *, can_tell: bool) -> Iterator[Finding]:
        site, message = put.site, put.view.message
        try:
            trailers = parse_trailers(message)
        except BadMessage as error:
            told = error.of_commit(site.commit)
            yield site.finding(told.message, hint=told.hint)
            return
        event = trailers.get("Uwf-Event")
        put = put._replace(trailers=trailers)
        yield from self.judge(put)
        if event not in self.events:
            yield site.finding(f"Uwf-Event is {event}, and must be {' or '.join(self.events)}")
            return
        if can_tell and (right := self.make_message(put)) is not None:
            yield from (site.finding(each, hint=_BY_HAND) for each in list_wrong(message, right))


def _check_commit(site: Location, commit: StrictCommit, time_s: int) -> Iterator[Finding]:
    view = commit.view
    if commit.problem is not None:
        yield site.finding(f"commit {view.oid} {commit.problem}", hint=_BY_HAND)
    if len(view.parents) > 1:
        yield site.finding(f"the commit has {len(view.parents)} parents, and may have one")
    if view.time_s < time_s:
        yield site.finding(f"its date, {view.time_s}, is before that of its parent, {time_s}")
    if (problem := find_author_problem(commit)) is not None:
        yield site.finding(problem, hint=_BY_HAND)


class _Versions(_Puts):
    top: Mapping[str, bytes] = {
        workflows.HEAD_FILE: RAW_FILE_MODE,
        NODES: RAW_TREE_MODE,
        workflows.SOURCE_FILE: RAW_FILE_MODE,
    }
    events = (workflows.PUT, workflows.ROLLBACK, workflows.REMOVE)
    is_whole = True

    def __init__(self, trees: TreeChecks, ref: str) -> None:
        super().__init__(trees, ref)
        self._name = ref.removeprefix(workflows.WORKFLOWS)
        self._passed: set[bytes] = set()

    def check(self, tip: Oid, known: Oid | None) -> Iterator[Finding]:
        if (problem := check_workflow_name(self._name)) is not None:
            message = f"{self._ref} cannot name a workflow: {problem}"
            hint = "put it under another name, then remove this one: `git update-ref -d REF`"
            yield Finding(message, hint, self._ref, tip)
        self._trees.recall(self._name, tip)
        yield from super().check(tip, known)

    def make_message(self, put: Put) -> bytes | None:
        """Make the message again; of a removal and a rollback the reason is free."""
        event, workflow = put.trailers["Uwf-Event"], put.trailers.get("Uwf-Workflow", "")
        if not is_node_hash(workflow):
            return None
        reason = "" if event == workflows.PUT else body_of(put.view.message)
        return workflows.build_version_message(self._name, event, NodeHash(workflow), reason)

    def judge(self, put: Put) -> Iterator[Finding]:
        yield from self._check_event(put, put.trailers.get("Uwf-Event"))
        if put.view.tree not in self._passed:
            yield from _check_files(self._trees, put)
        self._passed.add(put.view.tree)
        yield from self._check_node(put, put.trailers.get("Uwf-Workflow", ""))

    def _check_event(self, put: Put, event: str | None) -> Iterator[Finding]:
        if event == workflows.REMOVE:
            before: bytes | None = None
            with suppress(IndexError, StoreDamaged):
                before = read_commit(self._trees.objects, put.view.parents[0]).tree
            if before != put.view.tree:
                told = "it removes a version, but its tree differs from the one before"
                yield put.site.finding(told)
        elif event == workflows.ROLLBACK and not self._is_restored(put.view):
            yield put.site.finding("it restores a version that does not exist before it")

    def _is_restored(self, view: CommitView) -> bool:
        tree = view.tree
        with suppress(IndexError, StoreDamaged):
            while tree not in self._passed:
                view = read_commit(self._trees.objects, view.parents[0])
                self._passed.add(view.tree)
        return tree in self._passed

    def _check_node(self, put: Put, workflow: str) -> Iterator[Finding]:
        site, nodes = put.site, self._trees.nodes
        if not is_node_hash(workflow):
            yield site.finding("the commit names no workflow")
            return
        try:
            node = nodes.get(site, NodeHash(workflow))
            blob = nodes.find(site, NodeHash(workflow))
        except StoreDamaged as error:
            yield site.finding(f"Uwf-Workflow is {workflow}: {error.message}", node=workflow)
            return
        if node.type != WORKFLOW:
            yield site.finding(f"Uwf-Workflow is {workflow}, which is no Workflow", node=workflow)
        elif node.payload["name"] != self._name:
            names = f"is named {node.payload['name']!r}, and the ref {self._name!r}"
            yield site.finding(f"node {workflow} {names}", node=workflow)
        else:
            yield from self._check_ways(site, node)
        if put.files.get(workflows.HEAD_FILE, blob) != blob:
            yield site.finding(f"head.json is not the file of node {workflow}", node=workflow)
        yield from self._trees.check_builtin(site, put.added)
        yield from self._trees.check_needed(site, node.hash, put.added)

    def _check_ways(self, site: Location, workflow: Node) -> Iterator[Finding]:
        """Check that a flow is one, and that the roles exist to which the ways lead."""
        flow, graph = (find_reference(workflow.payload.get(each)) for each in ("flow", "moderator"))
        to: set[str] = set()
        try:
            if flow is not None:
                to.update(parse_flow_node(self._trees.nodes.get(site, flow)).roles)
            if graph is not None:
                ways = parse_graph(self._trees.nodes.get(site, graph)).values()
                to.update(way.to for each in ways for way in each if way.to != END)
        except StoreDamaged as error:
            yield site.finding(f"the ways of {workflow.hash}: {error.message}", node=flow or graph)
        for role in sorted(to - workflow.payload["roles"].keys()):
            told = f"{workflow.hash} leads to {role!r}, which is no role of it"
            yield site.finding(told, node=workflow.hash)


def _check_files(trees: TreeChecks, put: Put) -> Iterator[Finding]:
    """Check the source of one version and the files beside it."""
    if workflows.SOURCE_FILE not in put.files:
        return
    try:
        source = get_blob(trees.objects, object_id(put.files[workflows.SOURCE_FILE]))
    except StoreDamaged as error:
        yield put.site.finding(
            f"{workflows.SOURCE_FILE} cannot be read: {error.message}", hint=error.hint
        )
        return
    # Parse the source only if it may include files: parsing costs more than all the rest.
    if not put.others and b"!include" not in source:
        return
    files: dict[str, bytes] = {}
    if (problem := _list_files(trees, put.others, files)) is not None:
        yield put.site.finding(problem, hint=_INCLUDED)
    else:
        yield from _check_includes(trees, put, source, files)


def _check_includes(
    trees: TreeChecks, put: Put, source: bytes, files: Mapping[str, bytes]
) -> Iterator[Finding]:
    def read(path: str) -> bytes:
        if path not in files:
            raise CannotInclude("it is not in the same commit")
        try:
            return get_blob(trees.objects, object_id(files[path]))
        except StoreDamaged as error:
            raise CannotInclude(error.message) from None

    includes = Includes(read, name=workflows.SOURCE_FILE)
    try:
        parse_yaml(source, includes=includes)
    except BadYaml as error:
        for problem in error.problems:
            where = f"{problem.file or workflows.SOURCE_FILE}:{problem.line}"
            yield put.site.finding(f"{where}: {problem.message}", hint=_INCLUDED)
        return
    for path in files:
        if path not in includes.files:
            told = f"the commit has {path}, which does not belong there: no file includes it"
            yield put.site.finding(told, hint=_INCLUDED)


def _list_files(
    trees: TreeChecks,
    entries: Mapping[bytes, TreeEntry],
    files: dict[str, bytes],
    path: str = "",
    depth: int = 0,
) -> str | None:
    """Add blobs below *path* to *files*, within a version's limits; return the first problem."""
    for key, (mode, raw) in entries.items():
        name = path + key.decode(errors="backslashreplace")
        if len(files) >= MAX_FILES:
            return f"the commit has more than {MAX_FILES} files beside its nodes"
        if depth >= _DEEPEST:
            return f"{path[:_DEEPEST]}… is nested too deeply"
        if mode == RAW_FILE_MODE:
            files[name] = raw
            continue
        if mode != RAW_TREE_MODE:
            return f"{name} has mode {mode.decode()}, and a file has {RAW_FILE_MODE.decode()}"
        try:
            inner = trees.folders.get(raw)
        except StoreDamaged as error:
            return f"{name} cannot be read: {error.message}"
        trees.folders.forget(raw)
        if not inner:
            return f"the commit has {name}, an empty folder"
        if (problem := _list_files(trees, inner, files, f"{name}/", depth + 1)) is not None:
            return problem
    return None
