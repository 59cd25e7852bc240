"""Check the versions of a workflow: the commits of refs/workflows/.

Format: FORMAT.md, "The tree of a workflow commit".
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.commands.verify.puts import Put, PutRules, check_puts
from uwf_git.commands.verify.tree import NODES, TreeChecks
from uwf_git.commands.verify.workflow_files import check_files
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import BUILTIN, WORKFLOW
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash, is_node_hash
from uwf_git.model.references import find_reference
from uwf_git.model.workflow import parse_flow_node
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.store.nodes.folders import RAW_FILE_MODE, RAW_TREE_MODE
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.objects.message import body_of
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.workflows.registry import PUT, REMOVE, ROLLBACK, WORKFLOWS, build_version_message
from uwf_git.store.workflows.tree import HEAD_FILE, SOURCE_FILE

_TOP: Mapping[str, bytes] = {
    HEAD_FILE: RAW_FILE_MODE,
    NODES: RAW_TREE_MODE,
    SOURCE_FILE: RAW_FILE_MODE,
}


def check_workflow(
    store: Store, name: str, tip: Oid, *, known: Oid | None = None
) -> Iterator[Finding]:
    """Check the versions of workflow *name* from *tip* back to *known*, which is trusted.

    Without *known* all versions are checked.
    """
    yield from check_workflows(store, [(name, tip, known)])


def check_workflows(
    store: Store, batch: Iterable[tuple[str, Oid, Oid | None]]
) -> Iterator[Finding]:
    """Check workflows in one run: of each its name, its tip, and what is trusted of it."""
    trees = TreeChecks(store)
    for name, tip, known in batch:
        yield from check_workflow_in(trees, name, tip, known=known)
    yield from trees.nodes.finish()


def check_workflow_in(
    trees: TreeChecks, name: str, tip: Oid, *, known: Oid | None = None
) -> Iterator[Finding]:
    """Check the same within a larger run; some findings come only when *trees* finishes."""
    problem = check_workflow_name(name)
    if problem is not None:
        message = f"{WORKFLOWS}{name} cannot name a workflow: {problem}"
        hint = "put it under another name, then remove this one: `git update-ref -d REF`"
        yield Finding(message, hint, WORKFLOWS + name, tip)

    rules = PutRules(
        WORKFLOWS + name,
        _TOP,
        may_lose=True,
        judge=_Versions(trees, name, known).judge,
        make=partial(_make_message, name),
        events=(PUT, ROLLBACK, REMOVE),
        may_hold_more=True,
    )
    yield from check_puts(trees, rules, tip, known=known)


class _Versions:
    """The versions of one workflow, from the oldest on."""

    def __init__(self, trees: TreeChecks, name: str, known: Oid | None) -> None:
        self._trees = trees
        self._name = name
        self._known = known
        self._passed: set[bytes] = set()
        """The trees of the checked versions."""

    def judge(self, put: Put) -> Iterator[Finding]:
        """Check one version."""
        tree = put.view.tree
        yield from self._check_event(put, put.trailers.get("Uwf-Event"))
        if tree not in self._passed:
            yield from check_files(self._trees, put)
        self._passed.add(tree)
        yield from _judge(self._trees, self._name, put)

    def _check_event(self, put: Put, event: str | None) -> Iterator[Finding]:
        """Check that removals and rollbacks add nothing."""
        if event == REMOVE and self._tree_before(put) != put.view.tree:
            yield put.site.finding("it removes a version, but its tree differs from the one before")
        elif event == ROLLBACK and put.view.tree not in self._passed:
            self._add_known()
            if put.view.tree not in self._passed:
                yield put.site.finding("it restores a version that does not exist before it")

    def _add_known(self) -> None:
        """Collect the trees of the trusted versions: once, and only when needed."""
        oid, self._known = self._known, None
        while oid is not None:
            try:
                view = read_commit(self._trees.objects, oid)
            except StoreDamaged:
                # Reported where it was found.
                return
            self._passed.add(view.tree)
            oid = view.parents[0] if view.parents else None

    def _tree_before(self, put: Put) -> bytes | None:
        try:
            return read_commit(self._trees.objects, put.view.parents[0]).tree
        except (IndexError, StoreDamaged):
            return None


def _make_message(name: str, put: Put) -> bytes | None:
    """Return the message of a version; of a removal and a rollback the reason is free."""
    event, workflow = put.trailers["Uwf-Event"], put.trailers.get("Uwf-Workflow", "")
    if not is_node_hash(workflow):
        return None
    reason = "" if event == PUT else body_of(put.view.message)
    return build_version_message(name, event, NodeHash(workflow), reason)


def _judge(trees: TreeChecks, name: str, put: Put) -> Iterator[Finding]:
    site, trailers = put.site, put.trailers
    workflow = trailers.get("Uwf-Workflow", "")
    if not is_node_hash(workflow):
        yield site.finding("the commit names no workflow")
        return
    try:
        node = trees.nodes.get(site, NodeHash(workflow))
        blob = trees.nodes.find(site, NodeHash(workflow))
    except StoreDamaged as error:
        yield site.finding(f"Uwf-Workflow is {workflow}: {error.message}", node=workflow)
        return
    if node.type != WORKFLOW:
        yield site.finding(f"Uwf-Workflow is {workflow}, which is no Workflow", node=workflow)
    elif node.payload["name"] != name:
        told = node.payload["name"]
        yield site.finding(
            f"node {workflow} is named {told!r}, and the ref {name!r}", node=workflow
        )
    else:
        yield from _check_flow(trees, site, node)
    if put.files.get(HEAD_FILE, blob) != blob:
        yield site.finding(f"head.json is not the file of node {workflow}", node=workflow)
    yield from trees.check_needed(
        site, node.hash, [each for each in put.added if each not in BUILTIN]
    )


def _check_flow(trees: TreeChecks, site: Location, workflow: Node) -> Iterator[Finding]:
    """Check that the table of a flow is one: its schema says nothing about places."""
    flow = find_reference(workflow.payload.get("flow"))
    if flow is None:
        return
    try:
        parse_flow_node(trees.nodes.get(site, flow))
    except StoreDamaged as error:
        yield site.finding(f"the flow of {workflow.hash}: {error.message}", node=flow)
