"""The checks of a role: a command that came from elsewhere runs only if it is trusted here."""

from typing import Any

from uwf_git.commands.turn.choose_agent import Choice, may_run
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import describe_check
from uwf_git.store.store import Store
from uwf_git.store.threads.definitions import get_role, get_workflow
from uwf_git.store.threads.snapshot import Snapshot
from uwf_git.store.trust import find_meant_files


def _check_not_trusted(
    thread: ThreadId, role: str, *, command: str, files: tuple[str, ...]
) -> Refused:
    meant = f" (here {', '.join(files)})" if files else ""
    return Refused(
        f"the answer of role {role} would be checked by a command that is not trusted here: "
        f"{command}{meant}",
        code="check-not-trusted",
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
        Refused: one came from elsewhere, and *choice* does not allow it.
    """
    asked = get_role(snapshot, get_workflow(snapshot, present.workflow).roles[role])
    checks = [describe_check(command) for command in asked.checks]
    for check in checks:
        name = snapshot.record.workflow_name
        if choice.trust or may_run(store, check, workflow=name, workdir=choice.workdir):
            continue
        raise _check_not_trusted(
            snapshot.record.thread,
            role,
            command=check["command"],
            files=find_meant_files(check, choice.workdir) or (),
        )
    return checks
