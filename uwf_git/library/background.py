"""Start a background process that drives a task."""

import sys
from collections.abc import Sequence

from uwf_git.commands.drive.background import DriverRequest, start_driver
from uwf_git.commands.inspect.show import show_thread
from uwf_git.errors import Refused
from uwf_git.library.outcomes import BackgroundRun
from uwf_git.library.place import Place
from uwf_git.library.players import PREFIX
from uwf_git.model.names import ThreadId


def start_background(
    place: Place, task_id: str, *, until: str | None, max_steps: int | None, wait: bool
) -> BackgroundRun:
    """Start a process that drives the task; it holds the task when this returns.

    Raises:
        Refused: a Python function plays a role.
    """
    store = place.open()
    agents = show_thread(store, task_id)["agents"]
    bound = [role for role, command in agents.items() if command.startswith(PREFIX)]
    if bound:
        raise Refused(
            f"task {task_id} cannot run in the background: Python functions of this process play "
            f"{', '.join(bound)}",
            code="players-stay-here",
            hint="run it in this process, or bind those roles to programs: amend(agents={…})",
            thread=task_id,
            roles=list(bound),
        )
    words = [*(["--wait"] if wait else [])]
    if until is not None:
        words.append(f"--until={until}")
    if max_steps is not None:
        words.append(f"--max-steps={max_steps}")
    environ = dict(place.environ)
    if place.agent is not None:
        environ["UWF_AGENT"] = place.agent

    def argv(thread: ThreadId) -> Sequence[str]:
        # -P: import nothing from the agents' directory.
        command = [sys.executable, "-P", "-m", "uwf_git", "thread", "run", thread]
        return [*command, "--timestamps", "--format=text", *words]

    caller = place.caller._replace(environ=environ)
    driver = start_driver(store, caller, DriverRequest(task_id, argv, until, wait))
    return BackgroundRun(task_id=driver.thread, pid=driver.pid, log=driver.log)
