"""Checking an amendment: can the thread go on under the rules that it says.

Owns: that the workflow is there and named as it says, that the thread stands somewhere in it, and
the status that follows. Knows nothing of: presents (check_present.py folds them), files, trees.
Format: FORMAT.md, "What events do".
"""

from collections.abc import Iterator

from uwf_git.commands.check_nodes import NodeChecks
from uwf_git.commands.check_present import Steered
from uwf_git.commands.check_run import Site
from uwf_git.commands.trouble import Trouble
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import WORKFLOW
from uwf_git.model.limit import find_limit_problem
from uwf_git.model.node import Node
from uwf_git.model.signal import read_amendment
from uwf_git.model.thread import Present
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.node_tree import MissingNode


def check_amend(
    nodes: NodeChecks, site: Site, record: TransitionRecord, *, steered: Steered, signal: Node
) -> Iterator[Trouble]:
    """Give what is wrong with the amendment that *signal* asks for, where the thread stands."""
    present = steered.before.after_amend(read_amendment(signal.payload))
    status = present.status_amended(steered.status)
    if record.status != status:
        yield site.trouble(
            f"Uwf-Status is {record.status} after amend, and must be {status} after "
            f"{steered.status}"
        )
    for name, value in signal.payload.get("limits", {}).items():
        problem = None if value is None else find_limit_problem(name, value)
        if problem is not None:
            yield site.trouble(f"the limit {name} {problem}", node=signal.hash)
    if record.workflow != present.workflow:
        message = f"Uwf-Workflow is {record.workflow}, and amend leads to {present.workflow}"
        yield site.trouble(message, node=record.workflow)
    try:
        workflow = nodes.get(site, present.workflow)
    except MissingNode:
        message = f"the workflow in force is {present.workflow}, which is not in the commit"
        yield site.trouble(message, node=present.workflow)
        return
    except StoreDamaged:
        return  # told where it came in
    if workflow.type != WORKFLOW:
        message = f"the workflow in force is {workflow.hash}, which is no Workflow"
        yield site.trouble(message, node=workflow.hash)
        return
    yield from _check_workflow(site, record, workflow)
    if workflow.hash != steered.before.workflow:
        yield from _check_position(site, present, workflow)


def _check_workflow(site: Site, record: TransitionRecord, workflow: Node) -> Iterator[Trouble]:
    name = workflow.payload["name"]
    if record.workflow_name != name:
        message = f"Uwf-Workflow-Name is {record.workflow_name!r}, and its name is {name!r}"
        yield site.trouble(message, node=workflow.hash)


def _check_position(site: Site, present: Present, workflow: Node) -> Iterator[Trouble]:
    gone = present.find_gone_role(workflow.payload["roles"])
    if gone is not None:
        message = f"the thread stands at {gone!r}, which is no role of workflow {workflow.hash}"
        yield site.trouble(message, node=workflow.hash)
