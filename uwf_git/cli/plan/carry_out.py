"""What `uwf plan run` and `uwf plan resume` share: the stop server, the drive, what is asked."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.installed_version import installed_version
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import write_stderr
from uwf_git.cli.thread.run import DriveOptions, Driving, drive_shown
from uwf_git.commands.control.steer import patch_thread, resume_thread, retry_thread
from uwf_git.commands.control.stop import kill_thread
from uwf_git.commands.drive.background import DriverRequest, start_driver
from uwf_git.commands.plan.plans import find_where, hold_plans, read_plan_status
from uwf_git.commands.plan.stop_watch import StopWatch
from uwf_git.commands.step.step_thread import TurnInterrupted
from uwf_git.commands.turn.turn import Player
from uwf_git.errors import AgentFailed, Refused
from uwf_git.model.names import ThreadId
from uwf_git.model.text import visible_line
from uwf_git.plan.phases import PlanState, list_failures
from uwf_git.plan.plugin import find_plugin, write_plugin
from uwf_git.plan.settings import DEFAULTS, PlanSettings
from uwf_git.plan.stop_notices import CannotListen
from uwf_git.plan.views import Views
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head

# The stop server of `uwf plan run` and `uwf plan resume`.


def port_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``port`` to a verb."""
    return click.option(
        "--port",
        type=click.IntRange(0, 65535),
        metavar="P",
        help="Where AI tools tell that they have stopped.  "
        f"[default: {DEFAULTS.port}, or a free one]",
    )(function)


@contextmanager
def listening(
    settings: PlanSettings, port: int | None, *, elsewhere: bool
) -> Iterator[StopWatch | None]:
    """Listen for stop notices; yield None if that is not possible here, and nobody asked for it.

    If another process is to listen, *elsewhere*, only find out whether it can.

    Raises:
        CannotListen: the address that is set, or the *port* that was typed, is not to be had.
    """
    try:
        watch = StopWatch(settings, port=port)
    except CannotListen as problem:
        if port is not None or settings.address != DEFAULTS.address:
            raise
        note(f"warning: {problem.message}; a tool that never exits has to be ended by hand")
        yield None
        return
    with watch:
        if not elsewhere:
            if not watch.is_local:
                note(
                    f"warning: other machines may reach {settings.address}: a forged stop notice "
                    "can end a program that has left its report"
                )
            yield watch
            return
    yield None


# What a person is told, and at a terminal asked, when the tries of a phase are used up.


class Decision(NamedTuple):
    """What the person wants."""

    goes_on: bool
    hint: str = ""
    """For the next try."""


def tell_failures(state: PlanState) -> None:
    """Note which phase has failed, and why each of its tries did."""
    what = "the planning" if state.stage == "planning" else "the execution"
    if state.current is not None:
        what += f" of {state.current.file}"
    note(f"{visible_line(what)} has failed:")
    for line in list_failures(state):
        note(f"  {visible_line(line)}")


def ask_person(session: Session) -> Decision | None:
    """Ask whether to go on; None if nobody is at a terminal.

    Raises:
        KeyboardInterrupt: the person has left, by Ctrl-C or the end of the input.
        Refused: the hint is not valid text.
    """
    if not (session.stdin_is_tty and session.stderr_is_tty):
        return None
    while True:
        write_stderr("Continue with fresh tries (c), or stop (s)? ")
        answer = _read_line()
        if answer in {"s", "stop"}:
            return Decision(goes_on=False)
        if answer in {"c", "continue"}:
            write_stderr("A hint for the next try (Enter: none): ")
            return Decision(goes_on=True, hint=text_argument(_read_line(), "the hint"))


def _read_line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line.strip()


# What `uwf plan run` and `uwf plan resume` share: driving the thread, its views, its end.

PLAN_EXITS = {1: "it was stopped, or cannot be begun", 3: "it waits", 4: "another drives it"}
STOPPED = "stopped"
_NOWHERE = {"address": None, "port": None}

_HOW = DriveOptions(None, trust=False, wait=False, stream=True, background=False, timestamps=False)

background_option = click.option(
    "--background", is_flag=True, help="Return at once; see `uwf plan status`."
)


def _plans_wait(state: PlanState, thread: ThreadId) -> AgentFailed:
    why = "they are paused" if state.is_paused else "for the end of an agent's limit"
    hint = "`uwf plan resume` goes on"
    if state.is_stuck:
        why = f"all tries failed: {state.error}"
        hint = "`uwf plan resume --continue -m HINT` gives all tries again, --stop ends it"
    elif state.phase == "waiting_human":
        why = "for the answer of a person"
        hint = f"`uwf thread answer {thread}`, then `uwf plan resume`"
    return AgentFailed(f"the plans wait: {why}", code="plans-wait", hint=hint, thread=thread)


class PlanDriver:
    """Drives the plan thread of a directory, and keeps its views."""

    def __init__(
        self,
        session: Session,
        store: Store,
        workdir: str,
        thread: ThreadId,
        settings: PlanSettings = DEFAULTS,
    ) -> None:
        self._session, self._store = session._replace(cwd=workdir), store
        self._workdir, self._thread, self._settings = workdir, thread, settings
        self._views = Views(
            store,
            workdir,
            # Another driver may be at work.
            find_where(store, workdir, thread, settings),
            state_file=settings.state_file,
            memory_dir=settings.memory_dir,
        )

    @property
    def state(self) -> PlanState:
        """Where the plans stood at the last update."""
        return self._views.state

    def drive(
        self, watch: StopWatch | None, *, port: int | None = None, background: bool = False
    ) -> None:
        """Drive until it ends or waits; ask a person at a terminal what to do then.

        Stop notices go to *watch*; a driver in the background listens itself, at *port* if it was
        typed.

        Raises:
            AgentFailed, Refused: it is not completed; the document is printed all the same.
        """
        if background:
            self.update()
            self._drive_elsewhere(port)
            return
        heard = self._find_attendance(watch)
        self._views.where |= _NOWHERE if watch is None else watch.where
        try:
            self._drive_here(heard)
            while self.state.is_stuck and self.ask():
                self._drive_here(heard)
        finally:
            # Nobody listens there any more.
            self._views.where |= _NOWHERE
            self.update()
        self.tell_end()

    def _find_attendance(self, watch: StopWatch | None) -> Callable[[Player], Player]:
        """Return what *watch* makes of a player; the plugin is written for it."""
        plugin = find_plugin(self._workdir, plugin_dir=self._settings.plugin_dir)
        state_file = os.path.join(self._workdir, self._settings.state_file)
        write_plugin(plugin, installed_version(), state_file=state_file)
        hook = plugin.hook.script if self._settings.hooks else None

        def attend(play: Player) -> Player:
            return play if watch is None else watch.attend(play, lambda: self.state.phase, hook)

        return attend

    def _drive_here(self, attend: Callable[[Player], Player]) -> None:
        self.update()
        driving = Driving(self._thread, _HOW)
        # Held until the views are true, and no longer: a person may be asked then.
        with ExitStack() as held:
            try:
                session = self._session._replace(held=held)
                drive_shown(session, self._store, driving, on_change=self.update, attend=attend)
            except TurnInterrupted as interrupted:
                interrupted.hint = "nothing was lost: `uwf plan resume` goes on"
                raise
            finally:
                self.update()

    def ask(self) -> bool:
        """Ask, at a terminal, whether to go on; return whether the thread may be driven again."""
        tell_failures(self.state)
        decision = ask_person(self._session)
        if decision is None:
            return False
        if not decision.goes_on:
            self.stop("")
            return False
        self.go_on(decision.hint)
        return True

    def go_on(self, hint: str) -> None:
        """Give all tries again."""
        retry_thread(self._store, caller_of(self._session), self._thread, hint=hint)
        self.update()

    def end_pause(self, reason: str) -> None:
        """End a pause, or the wait for the end of a usage limit."""
        resume_thread(self._store, caller_of(self._session), self._thread, reason=reason)
        self.update()

    def allow_tries(self, most: int) -> None:
        """Change how many tries there are in all."""
        caller = caller_of(self._session)
        patch_thread(self._store, caller, self._thread, {"maxRetries": most})
        self.update()

    def stop(self, reason: str) -> None:
        """End the thread."""
        caller = caller_of(self._session)
        kill_thread(self._store, caller, self._thread, reason=reason or STOPPED)
        self.update()

    def update(self) -> None:
        """Bring the views up to date; what cannot be written is written the next time."""
        with suppress(OSError), hold_plans(self._store):
            self._views.update(get_head(self._store, self._thread).commit)

    def tell_end(self) -> None:
        """Print where the plans stand.

        Raises:
            AgentFailed, Refused: they are not completed.
        """
        self.update()
        emit(self._session, read_plan_status(self._store, self._workdir, self._settings))
        if self.state.phase == "failed":
            why = "" if self.state.error in {"", STOPPED} else f": {self.state.error}"
            raise Refused(
                f"the plans were stopped{why}",
                code="plans-stopped",
                hint=f"`uwf thread read {self._thread}` shows what was done",
                thread=self._thread,
            )
        if self.state.phase != "completed":
            raise _plans_wait(self.state, self._thread)

    def _drive_elsewhere(self, port: int | None) -> None:
        def name_driver(_thread: ThreadId) -> Sequence[str]:
            # -P: modules in the working directory of the agents are not imported.
            words = ["plan", "resume", "--format=text", f"--dir={self._workdir}"]
            words += [] if port is None else [f"--port={port}"]
            return [sys.executable, "-P", "-m", "uwf_git", *words]

        request = DriverRequest(self._thread, name_driver)
        driver = start_driver(self._store, caller_of(self._session), request)
        emit(self._session, driver._asdict())
        note(
            "next: `uwf plan status` tells where the plans stand; "
            f"`uwf thread wait {self._thread}` waits until they stop"
        )
