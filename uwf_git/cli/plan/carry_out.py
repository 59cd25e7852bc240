"""What `uwf plan run` and `uwf plan resume` share: driving the thread, its views, its end."""

import sys
from contextlib import suppress

from uwf_git.cli.output.render import emit, note
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import write_stderr
from uwf_git.cli.thread.driving import DriveOptions, Driving, drive_shown
from uwf_git.commands.control.kill import kill_thread
from uwf_git.commands.control.retry import retry_thread
from uwf_git.commands.plan.status import read_plan_status
from uwf_git.errors import AgentFailed, Refused
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.visible import visible_line
from uwf_git.plan.phases import PlanState
from uwf_git.plan.views import Views
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head

PLAN_EXITS = {1: "it was stopped, or cannot be begun", 3: "it waits", 4: "another drives it"}
STOPPED = "stopped"

_HOW = DriveOptions(None, trust=False, wait=False, stream=True, background=False, timestamps=False)


class PlansWait(AgentFailed):
    """The plans wait: for a person, the end of a pause, or that of a usage limit."""

    code = "plans-wait"

    def __init__(self, state: PlanState, thread: ThreadId) -> None:
        is_stuck = state.phase == "waiting_human"
        why = f"all tries failed: {state.error}" if is_stuck else "paused, or an agent's limit"
        super().__init__(
            f"the plans wait: {why}",
            hint="`uwf plan resume --continue -m HINT` gives all tries again, --stop ends it"
            if is_stuck
            else "`uwf plan resume` goes on",
            thread=thread,
        )


class PlansStopped(Refused):
    """The plans were stopped."""

    code = "plans-stopped"

    def __init__(self, state: PlanState, thread: ThreadId) -> None:
        super().__init__(
            f"the plans were stopped: {state.error or 'no reason was given'}",
            hint=f"`uwf thread read {thread}` shows what was done",
            thread=thread,
        )


class PlanDriver:
    """Drives the plan thread of a directory, and keeps its views."""

    def __init__(self, session: Session, store: Store, workdir: str, thread: ThreadId) -> None:
        # Held for one drive only: a person may be asked after it, and another one follows.
        self._session, self._store = session._replace(cwd=workdir, held=None), store
        self._workdir, self._thread = workdir, thread
        self._views = Views(store, workdir, {"thread": thread, "repo": store.path})

    def drive(self) -> None:
        """Drive until it ends or waits; ask a person at a terminal what to do then.

        Raises:
            PlansWait, PlansStopped: it is not completed; the document is printed all the same.
        """
        while True:
            self.update()
            try:
                driving = Driving(self._thread, _HOW)
                drive_shown(self._session, self._store, driving, on_change=self.update)
            finally:
                self.update()
            if self._views.state.phase != "waiting_human" or not self.ask():
                break
        self.tell_end()

    def ask(self) -> bool:
        """Ask, at a terminal, whether to go on; return whether the thread may be driven again."""
        if not (self._session.stdin_is_tty and self._session.stderr_is_tty):
            return False
        state = self._views.state
        place = "the planning" if state.current is None else state.current.file
        note(f"{visible_line(place)} has failed: {visible_line(state.error)}")
        while True:
            write_stderr("Continue with fresh tries (c), or stop (s)? ")
            answer = self._read_line()
            if answer in {"s", "stop"}:
                self.stop("")
                return False
            if answer in {"c", "continue"}:
                write_stderr("A hint for the next try (Enter: none): ")
                self.go_on(self._read_line())
                return True

    def go_on(self, hint: str) -> None:
        """Give all tries again."""
        retry_thread(self._store, caller_of(self._session), self._thread, hint=hint)

    def stop(self, reason: str) -> None:
        """End the thread."""
        caller = caller_of(self._session)
        kill_thread(self._store, caller, self._thread, reason=reason or STOPPED)
        self.update()

    def update(self) -> None:
        """Bring the views up to date; what cannot be written is written the next time."""
        with suppress(OSError):
            self._views.update(get_head(self._store, self._thread).commit)

    def tell_end(self) -> None:
        """Print where the plans stand.

        Raises:
            PlansWait, PlansStopped: they are not completed.
        """
        self.update()
        emit(self._session, read_plan_status(self._store, self._workdir))
        state = self._views.state
        if state.phase == "failed":
            raise PlansStopped(state, self._thread)
        if state.phase != "completed":
            raise PlansWait(state, self._thread)

    def _read_line(self) -> str:
        line = sys.stdin.readline()
        if not line:
            raise KeyboardInterrupt
        return line.strip()
