"""`uwf workflow remove`: a name means nothing any more.

Always true: the removal is a commit; every version stays where it was, and so does every thread.
"""

from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.workflow_version import get_present
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.registry import remove_version
from uwf_git.store.store import Store


class RemovedWorkflow(NamedTuple):
    """A workflow that was removed."""

    name: str
    workflow: NodeHash
    """What the name meant until now."""

    version: str
    """The commit of the removal."""


def remove_workflow(
    store: Store, caller: Caller, name: str, *, reason: str = ""
) -> RemovedWorkflow:
    """Take the workflow *name* out of the registry.

    Threads that run carry their workflow themselves. `uwf workflow rollback` brings it back.

    Raises:
        NoSuchWorkflow, WorkflowRemoved: there is none.
        WorkflowMoved: somebody else put a version at the same time.
    """
    seen = get_present(store, name)
    removal = remove_version(store, seen, reason=reason, signing=caller.signing(store))
    return RemovedWorkflow(seen.name, seen.workflow, removal.commit.oid)
