"""Names that a push may give to refs of ours.

Owns: which names below our prefixes mean something. Knows nothing of: what the refs point at.
Always true: a wrong name is refused whatever is done with it, deletions as well: on a file system
that ignores case, deleting refs/threads/01j… deletes the thread of the right name.
"""

from uwf_git.commands.receive_moves import Push
from uwf_git.commands.ref_update import RefUpdate, Refusal
from uwf_git.model.thread_id import is_thread_id
from uwf_git.model.workflow_name import check_workflow_name, fold_workflow_name
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.loose_nodes import NODES_REF
from uwf_git.store.registry import WORKFLOWS

_LOCAL = "refs/uwf/"


def find_bad_name(push: Push, update: RefUpdate) -> Refusal | None:
    """Tell what is wrong with the name of the ref in *update*; None if nothing is."""
    name = update.name
    if name.startswith(_LOCAL):
        return Refusal(
            name,
            "what is below refs/uwf/ belongs to one store alone, and is not shared",
            "push threads, archive and workflows only; `git push --mirror` pushes too much",
        )
    problem = _find_problem(push, name)
    if problem is None:
        return None
    return Refusal(name, problem, "push it under another name, or leave it out")


def _find_problem(push: Push, name: str) -> str | None:
    for prefix in (ACTIVE, ARCHIVE):
        if name.startswith(prefix):
            given = name.removeprefix(prefix)
            return None if is_thread_id(given) else f"{given[:60]!r} is not a thread id"
    if name.startswith(WORKFLOWS):
        return _find_workflow_problem(push, name)
    return None if name == NODES_REF else "no ref of uwf has such a name"


def _find_workflow_problem(push: Push, name: str) -> str | None:
    given = name.removeprefix(WORKFLOWS)
    problem = check_workflow_name(given)
    if problem is not None:
        return f"{given[:60]!r} is no name for a workflow: {problem}"
    if push.store.refs.find(name) is not None:
        return None
    pushed = (each.removeprefix(WORKFLOWS) for each in push.updates if each.startswith(WORKFLOWS))
    for other in (*push.store.refs.names(WORKFLOWS), *pushed):
        if other != given and fold_workflow_name(other) == fold_workflow_name(given):
            return f"it differs from the workflow {other} in case only"
    return None
