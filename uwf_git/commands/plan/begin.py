"""`uwf plan run`: whether plans may be begun in a directory, and the folders that they need."""

import os

from uwf_git.commands.plan.at_work import require_rest
from uwf_git.commands.plan.find import find_plan_thread
from uwf_git.errors import Refused, name_some
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED
from uwf_git.plan.plan_files import find_plans, list_plan_problems
from uwf_git.plan.settings import DEFAULTS, PlanSettings
from uwf_git.plan.whole_file import keep_out_of_git
from uwf_git.store.store import Store


class PlansUnfinished(Refused):
    """The directory has a workflow that has not ended."""

    code = "plans-unfinished"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(
            f"thread {thread} has not ended the plans of this directory",
            hint="`uwf plan resume` goes on with it; `uwf plan clean` ends it",
            thread=thread,
        )


def prepare_plans(
    store: Store, workdir: str, settings: PlanSettings = DEFAULTS, *, has_plans: bool = False
) -> None:
    """Check that plans may be begun in *workdir*, and make the folders that they need.

    With *has_plans* the plan files that lie there are to be carried out as they are.

    Raises:
        PlansAtWork, PlansUnfinished: the directory has a workflow that has not ended.
        Refused: it has plan files.
        Refused: those that are to be taken as they are cannot be carried out.
        BadUsage: a link leads out of it.
        OSError: a folder cannot be made.
    """
    found = find_plan_thread(store, workdir, settings)
    if found is not None and found.record.status not in ENDED:
        require_rest(store, found.record.thread)
        raise PlansUnfinished(found.record.thread)
    there = find_plans(workdir, settings.plan_dir)
    problems = list_plan_problems(workdir, there) if has_plans else []
    if problems:
        raise Refused(
            "the plan files cannot be carried out",
            code="bad-plans",
            hint=f"plan files are {settings.plan_dir}/NNN-name.md; without --plans an agent "
            "writes them",
            problems=list(problems),
        )
    if there.plans and not has_plans:
        names = [plan.file for plan in there.plans]
        raise Refused(
            f"there are plan files already: {name_some(names, most=3)}",
            code="plans-there",
            hint="--plans takes them as they are; `uwf plan clean --all` removes them",
            files=names,
        )
    for folder in (settings.plan_dir, settings.memory_dir):
        os.makedirs(os.path.join(workdir, folder), exist_ok=True)
    keep_out_of_git(os.path.join(workdir, os.path.dirname(settings.state_file)))
