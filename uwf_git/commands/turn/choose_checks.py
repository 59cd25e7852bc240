"""The checks of a role: a command that came from elsewhere runs only if it is trusted here."""

from typing import Any

from uwf_git.commands.turn.choose_agent import Choice, may_run
from uwf_git.errors import Refused
from uwf_git.model.thread import ThreadState
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.workflow import describe_check
from uwf_git.store.store import Store
from uwf_git.store.threads.definitions import get_role, get_workflow
from uwf_git.store.threads.snapshot import Snapshot
from uwf_git.store.trust import find_meant_files


class CheckNotTrusted(Refused):
    """A check of the role came from elsewhere, or means other files here, and is not trusted."""

    code = "check-not-trusted"

    def __init__(
        self, thread: ThreadId, role: str, *, command: str, files: tuple[str, ...]
    ) -> None:
        meant = f" (here {', '.join(files)})" if files else ""
        super().__init__(
            f"the answer of role {role} would be checked by a command that is not trusted here: "
            f"{command}{meant}",
            hint=f"read it; if it may run here: `uwf thread step {thread} --trust`",
            thread=thread,
            role=role,
            command=command,
            files=list(files),
        )


def choose_checks(
    store: Store, snapshot: Snapshot, present: ThreadState, *, role: str, choice: Choice
) -> list[dict[str, Any]]:
    """Return what is trusted where the checks of *role* may run, a payload each.

    Raises:
        CheckNotTrusted: one came from elsewhere, and *choice* does not allow it.
    """
    asked = get_role(snapshot, get_workflow(snapshot, present.workflow).roles[role])
    checks = [describe_check(command) for command in asked.checks]
    for check in checks:
        name = snapshot.record.workflow_name
        if choice.trust or may_run(store, check, workflow=name, workdir=choice.workdir):
            continue
        raise CheckNotTrusted(
            snapshot.record.thread,
            role,
            command=check["command"],
            files=find_meant_files(check, choice.workdir) or (),
        )
    return checks
