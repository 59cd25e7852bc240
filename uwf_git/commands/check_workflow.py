"""Checking a workflow: does each of its versions hold what it says.

Owns: what a commit of refs/workflows/ must be. Knows nothing of: threads, which workflows there
are. Always true: nothing is written, and nothing is raised for what is found: damage is a trouble.
Format: FORMAT.md, "The tree of a workflow commit".
"""

from collections.abc import Iterator, Mapping

from uwf_git.commands.check_put import Put, PutRules, check_puts
from uwf_git.commands.check_tree import NODES, TreeChecks
from uwf_git.commands.trouble import Trouble
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import WORKFLOW
from uwf_git.model.node_hash import NodeHash, is_node_hash
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.store.node_files import FILE, FOLDER, object_id
from uwf_git.store.node_tree import get_blob
from uwf_git.store.refs import Oid
from uwf_git.store.registry import WORKFLOWS
from uwf_git.store.store import Store

_HEAD = "head.json"
_SOURCE = "workflow.yaml"
_TOP: Mapping[str, bytes] = {_HEAD: FILE, NODES: FOLDER, _SOURCE: FILE}


def check_workflow(
    store: Store, name: str, tip: Oid, *, known: Oid | None = None
) -> Iterator[Trouble]:
    """Give what is wrong in the versions of workflow *name* from *tip* back to *known*, exclusive.

    Without *known* back to the first one; nothing if all is well. *known* is believed.
    """
    trees = TreeChecks(store)
    yield from check_workflow_in(trees, name, tip, known=known)
    yield from trees.nodes.finish()


def check_workflow_in(
    trees: TreeChecks, name: str, tip: Oid, *, known: Oid | None = None
) -> Iterator[Trouble]:
    """Do the same as one of several checks in a run; some of it is told when *trees* finish."""
    problem = check_workflow_name(name)
    if problem is not None:
        message = f"{WORKFLOWS}{name} cannot name a workflow: {problem}"
        hint = "put it under another name, then remove this one: `git update-ref -d REF`"
        yield Trouble(message, hint, WORKFLOWS + name, tip)

    def judge(put: Put) -> Iterator[Trouble]:
        return _judge(trees, name, put)

    rules = PutRules(WORKFLOWS + name, _TOP, may_lose=True, judge=judge)
    yield from check_puts(trees, rules, tip, known=known)


def _judge(trees: TreeChecks, name: str, put: Put) -> Iterator[Trouble]:
    site, trailers = put.site, put.trailers
    if _SOURCE in put.files:
        try:
            get_blob(trees.objects, object_id(put.files[_SOURCE]))
        except StoreDamaged as error:
            yield site.trouble(f"{_SOURCE} cannot be read: {error.message}", hint=error.hint)
    if trailers.get("Uwf-Workflow-Name") != name:
        told = trailers.get("Uwf-Workflow-Name")
        yield site.trouble(f"Uwf-Workflow-Name is {told!r}, and the ref is of {name!r}")
    workflow = trailers.get("Uwf-Workflow", "")
    if not is_node_hash(workflow):
        yield site.trouble("the commit names no workflow")
        return
    try:
        node = trees.nodes.get(site, NodeHash(workflow))
        blob = trees.nodes.find(site, NodeHash(workflow))
    except StoreDamaged as error:
        yield site.trouble(f"Uwf-Workflow is {workflow}: {error.message}", node=workflow)
        return
    if node.type != WORKFLOW:
        yield site.trouble(f"Uwf-Workflow is {workflow}, which is no Workflow", node=workflow)
    elif node.payload["name"] != name:
        told = node.payload["name"]
        yield site.trouble(
            f"node {workflow} is named {told!r}, and the ref {name!r}", node=workflow
        )
    if put.files.get(_HEAD, blob) != blob:
        yield site.trouble(f"head.json is not the file of node {workflow}", node=workflow)
