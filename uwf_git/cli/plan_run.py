"""`uwf plan run` and `uwf plan resume`: the drive of a plan thread, and an observer beside it."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import click

from uwf_git.cli.app.parameters import (
    INPUT,
    Input,
    message_option,
    read_prompt,
    text_argument,
    with_options,
)
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of
from uwf_git.cli.output.screen import ask, emit, note
from uwf_git.cli.plan import directory_option, find_directory, open_project
from uwf_git.cli.session import Session, installed_version
from uwf_git.cli.thread.run import DriveOptions, Driving, drive_shown
from uwf_git.cli.thread.start import begin_thread
from uwf_git.commands.background import DriverRequest, start_driver
from uwf_git.commands.control.answer import kill_thread, patch_thread, resume_thread, retry_thread
from uwf_git.commands.control.change_rules import AmendRequest, amend_thread
from uwf_git.commands.plan import (
    WORKFLOW,
    StopWatch,
    Views,
    find_plan_thread,
    find_where,
    hold_plans,
    prepare_plans,
    read_plan_status,
    require_no_driver,
)
from uwf_git.commands.start import StartRequest
from uwf_git.commands.step.record_turn import TurnInterrupted
from uwf_git.commands.turn.choose_agent import name_agent
from uwf_git.commands.turn.flow import find_limit
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.errors import AgentFailed, BadUsage, Refused
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.names import ThreadId
from uwf_git.model.text import visible_line
from uwf_git.model.thread import ENDED
from uwf_git.plan.hooks import CannotListen, find_hook, write_plugin
from uwf_git.plan.phases import EXECUTOR, PLAN_VERIFIER, VERIFIER, WORKERS, PlanState, list_failures
from uwf_git.plan.settings import DEFAULTS, PlanSettings, load_plan_settings
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import Snapshot, get_typed, read_snapshot
from uwf_git.store.threads.local_files import find_workdir, set_workdir

PLAN_EXITS = {
    1: "the plans were stopped, are at a limit of their thread, or cannot be begun",
    3: "the plans wait for a person, for a resume or for a usage limit",
    4: "another process drives the plans",
}

_HINT = "`uwf plan run TASK`, or `uwf plan run -f FILE`; `-` is standard input"
_HOW = DriveOptions(stream=True)
_NOWHERE = {"address": None, "port": None}
_STOPPED = "stopped"


class PlanHow(NamedTuple):
    """The options that both verbs have."""

    port: int | None
    background: bool
    wait: bool
    agent: str | None
    verifier: str | None
    ai: str | None


def _read_how(given: dict[str, Any]) -> None:
    how = PlanHow(**{name: given.pop(name) for name in PlanHow._fields})
    if how.agent is not None and how.ai is not None:
        raise _two_agents("--agent and --ai")
    given["how"] = how


how_options = with_options(
    _read_how,
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        metavar="P",
        help="Where AI tools tell that they have stopped.  "
        f"[default: {DEFAULTS.port}, or a free one]",
    ),
    click.option("--background", is_flag=True, help="Return at once; see `uwf plan status`."),
    click.option(
        "--wait", is_flag=True, help="Sleep until a usage limit is over, as `uwf thread run` does."
    ),
    click.option("--agent", metavar="CMD", help="Who plans and works, such as claude."),
    click.option("--verifier", metavar="CMD", help="Who verifies, if not the agent does."),
    click.option("--ai", metavar="CMD", help="In place of --agent: called as CMD -p PROMPT."),
)


@verb(
    "uwf plan run 'Build the shop of docs/shop.md' --agent claude --verifier codex",
    "uwf plan run -f task.md -d ~/shop --max-retries 5 --background",
    "uwf plan run --plans --ai my-ai",
    exits=PLAN_EXITS,
)
@click.argument("task", required=False)
@click.option("-f", "--file", "file", type=INPUT, help="Read the task from a file.")
@directory_option
@click.option(
    "--max-retries",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"The tries in all, of the planning and of each plan.  [default: {DEFAULTS.max_retries}]",
)
@click.option(
    "--plans",
    "has_plans",
    is_flag=True,
    help="Carry out the plan files that lie there; no planner.",
)
@how_options
def run_command(
    session: Session,
    *,
    task: str | None,
    file: Input | None,
    directory: str | None,
    max_retries: int | None,
    has_plans: bool,
    how: PlanHow,
) -> None:
    """Split a task into plan files, carry them out in order, and have each phase verified.

    A phase whose tries are used up waits for a person: at a terminal you are asked, elsewhere `uwf
    plan resume` decides. A directory has at most one unfinished thread of plans. It may hold no
    plan files when the run begins, unless --plans takes the files as they are; then no task is
    needed. The settings uwf.plan.* (`uwf config list`) count where an option is not given.
    """
    prompt = read_prompt(task, file, name="task", hint=_HINT, is_needed=not has_plans)
    workdir = find_directory(session, directory)
    session = session._replace(cwd=workdir)
    store = session.open_store(create=True)
    settings = load_plan_settings(store, workdir)
    request = StartRequest(
        WORKFLOW,
        f"Carry out the plans in {settings.plan_dir}." if prompt is None else prompt,
        _name_agents(how, settings),
        workdir=workdir,
        needs_agents=True,
        state={
            "maxRetries": max_retries or settings.max_retries,
            "hasPlans": has_plans,
            **_find_state(settings),
        },
    )
    with listening(settings, how.port, elsewhere=how.background) as watch:
        with hold_plans(store):
            prepare_plans(store, workdir, settings, has_plans=has_plans)
            started = begin_thread(session, store, request)
        note(f"thread {started.thread}")
        driver = PlanDriver(session, store, workdir, started.thread, settings, waits=how.wait)
        driver.drive(watch, port=how.port, background=how.background)


def _find_state(settings: PlanSettings) -> dict[str, Any]:
    named = {
        "planDir": (settings.plan_dir, DEFAULTS.plan_dir),
        "statusFile": (settings.status_file, DEFAULTS.status_file),
        "timeouts": (settings.timeouts_ms, DEFAULTS.timeouts_ms),
    }
    return {name: value for name, (value, usual) in named.items() if value != usual}


def _name_agents(how: PlanHow, settings: PlanSettings) -> tuple[str, ...]:
    agent, ai = how.agent, how.ai
    if agent is None and ai is None:
        agent, ai = settings.agent, settings.ai
        if agent is not None and ai is not None:
            raise _two_agents("uwf.plan.agent and uwf.plan.ai")
    verifier = settings.verifier if how.verifier is None else how.verifier
    if ai is not None:
        agent = shlex.join(["uwf-cli", f"{text_argument(ai, '--ai')} -p {{prompt}}"])
    named = [] if agent is None else [_name(agent, "--agent")]
    if verifier is not None:
        named += [f"{role}={_name(verifier, '--verifier')}" for role in (PLAN_VERIFIER, VERIFIER)]
    return tuple(named)


def _two_agents(names: str) -> BadUsage:
    return BadUsage(
        f"{names} exclude each other", code="two-agents", hint="--ai CMD runs CMD -p PROMPT"
    )


def _name(agent: str, option: str) -> str:
    text = text_argument(agent, option)
    return text if text.lstrip().startswith("{") else name_agent(text)


@verb(
    "uwf plan resume",
    "uwf plan resume --continue -m 'the tests go into spec/'",
    "uwf plan resume --stop",
    exits=PLAN_EXITS,
)
@directory_option
@click.option("--continue", "goes_on", is_flag=True, help="Give the phase fresh tries.")
@click.option("--stop", "ends", is_flag=True, help="End the plans.")
@message_option("HINT", "A hint for the agent, or a reason to stop.")
@click.option(
    "--max-retries",
    type=click.IntRange(min=1),
    metavar="N",
    help="The tries of each phase from now on.",
)
@how_options
def resume_command(
    session: Session,
    *,
    directory: str | None,
    goes_on: bool,
    ends: bool,
    message: str,
    max_retries: int | None,
    how: PlanHow,
) -> None:
    """Go on with the plans of a directory, after a crash, a pause, a limit or used-up tries.

    When all tries of a phase are used up, you are asked at a terminal. Elsewhere --continue or
    --stop decides, or a --max-retries above the tries that were used: the phase gets fresh tries.
    Without any of the three, the command only prints the state, and the status is 3. --agent,
    --verifier and --ai count from now on; a new --agent leaves a verifier that differs from the
    old agent.
    """
    if goes_on and ends:
        raise click.UsageError("--continue and --stop exclude each other")
    workdir, store, settings = open_project(session, directory)
    found = find_plan_thread(store, workdir, settings)
    if store is None or found is None:
        raise _nothing_to_resume(workdir)
    thread = found.record.thread
    driver = PlanDriver(session, store, workdir, thread, settings, waits=how.wait)
    # Also of a thread that has ended: its last driver may have been killed before it told so.
    driver.update()
    if found.record.status in ENDED:
        raise _nothing_to_resume(workdir)
    if ends:
        driver.steer(kill_thread, reason=message or _STOPPED)
        driver.tell_end()
        return
    require_no_driver(store, thread)
    if not os.path.isdir(find_workdir(store, thread) or workdir):
        # The directory was renamed.
        set_workdir(store, thread, workdir)
    # Before anything is changed: the port may be taken.
    with listening(settings, how.port, elsewhere=how.background) as watch:
        if max_retries is not None:
            driver.steer(patch_thread, {"maxRetries": max_retries})
            # It is asked for so that they go on.
            goes_on = goes_on or max_retries > driver.state.tries
        driver.change_agents(_name_new_agents(found, how))
        if _make_ready(driver, message, goes_on=goes_on):
            driver.drive(watch, port=how.port, background=how.background)
        else:
            driver.tell_end()


def _name_new_agents(found: Snapshot, how: PlanHow) -> tuple[str, ...]:
    named = _name_agents(how, DEFAULTS)
    binding = found.get_present().binding
    players = [get_typed(found, binding[role], AGENT_CONFIG) for role in (EXECUTOR, VERIFIER)]
    if len(named) != 1 or players[0].payload == players[1].payload:
        return named
    return tuple(f"{role}={named[0]}" for role in sorted(WORKERS))


def _make_ready(driver: "PlanDriver", hint: str, *, goes_on: bool) -> bool:
    """End what the plans wait for; return whether they may be driven then."""
    while driver.state.is_paused or (driver.state.until_ms is not None and not driver.waits):
        driver.steer(resume_thread, reason=hint)
    if driver.state.is_stuck:
        if not goes_on:
            if hint:
                note("note: the hint is not given without --continue")
            return driver.ask()
        driver.steer(retry_thread, hint=hint)
        return True
    if goes_on and hint:
        note("note: no phase has failed, so no agent is told the hint")
    return driver.state.phase != "waiting_human"


def _nothing_to_resume(workdir: str) -> Refused:
    return Refused(
        f"there are no unfinished plans in {workdir}",
        code="nothing-to-resume",
        hint="`uwf plan run TASK` begins",
    )


# The stop server.


@contextmanager
def listening(
    settings: PlanSettings, port: int | None, *, elsewhere: bool
) -> Iterator[StopWatch | None]:
    """Listen for stop notices; yield None if that is not possible here, and nobody asked for it.

    If another process is to listen, *elsewhere*, only find out whether it can.
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


# The drive of the thread, its views, its end.


class PlanDriver:
    """Drives the plan thread of a directory, and keeps its views."""

    def __init__(
        self,
        session: Session,
        store: Store,
        workdir: str,
        thread: ThreadId,
        settings: PlanSettings = DEFAULTS,
        *,
        waits: bool = False,
    ) -> None:
        self.waits = waits
        self._session, self._store = session._replace(cwd=workdir), store
        self._workdir, self._thread, self._settings = workdir, thread, settings
        self._views = Views(store, workdir, settings)
        self._listens: Mapping[str, Any] = {}
        """Where this process hears of the stops of the turns that it plays."""

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
        """
        if background:
            self.update()
            self._drive_elsewhere(port)
            return
        attend = self._find_attendance(watch)
        self._drive_here(attend)
        while self.state.is_stuck and self.ask():
            self._drive_here(attend)
        self.tell_end()

    def _find_attendance(self, watch: StopWatch | None) -> Callable[[Player], Player]:
        """Return what *watch* makes of a player; the plugin is written for it."""
        state_file = os.path.join(self._workdir, self._settings.state_file)

        def write() -> str | None:
            hook = find_hook(self._workdir, self._settings.plugin_dir)
            write_plugin(hook, installed_version(), state_file=state_file)
            return hook.script if self._settings.hooks else None

        script = write()

        def attend(play: Player) -> Player:
            if watch is not None:
                play = watch.attend(play, lambda: self.state.phase, script)

            def play_here(turn: Turn) -> Played:
                # Not before: until a turn is played here, another process may drive.
                self._listens = _NOWHERE if watch is None else watch.where
                self.update()
                # An agent may have removed it, or put something in its place.
                with suppress(OSError, Refused):
                    write()
                return play(turn)

            return play_here

        return attend

    def _drive_here(self, attend: Callable[[Player], Player]) -> None:
        self.update()
        driving = Driving(self._thread, _HOW._replace(wait=self.waits))
        # Held until the views are true, and no longer: a person may be asked then.
        with ExitStack() as held:
            try:
                session = self._session._replace(held=held)
                drive_shown(session, self._store, driving, on_change=self.update, attend=attend)
            except TurnInterrupted as interrupted:
                interrupted.hint = f"{interrupted.saved}: `uwf plan resume` goes on"
                raise
            finally:
                # Nobody listens any more.
                self._listens = dict.fromkeys(self._listens)
                self.update()
                self._listens = {}

    def ask(self) -> bool:
        """Ask, at a terminal, whether to go on; return whether the thread may be driven again."""
        tell_failures(self.state)
        if not self._session.can_ask:
            return False
        hint = ask_person()
        if hint is None:
            self.steer(kill_thread, reason=_STOPPED)
            return False
        self.steer(retry_thread, hint=hint)
        return True

    def steer(self, change: Callable[..., object], *words: Any, **more: Any) -> None:
        """Change the thread by a command of `uwf thread`."""
        change(self._store, caller_of(self._session), self._thread, *words, **more)
        self.update()

    def change_agents(self, agents: tuple[str, ...]) -> None:
        """Have *agents* play from now on."""
        if not agents:
            return
        try:
            request = AmendRequest(self._thread, agents=agents)
            amend_thread(self._store, caller_of(self._session), request)
        except Refused as refused:
            if refused.code != "already-so":
                raise
        self.update()

    def update(self) -> None:
        """Bring the views up to date; what cannot be written is written the next time."""
        with suppress(OSError), hold_plans(self._store):
            known = find_where(self._store, self._workdir, self._thread, self._settings)
            tip = get_head(self._store, self._thread).commit
            self._views.update(tip, {**known, **self._listens})

    def tell_end(self) -> None:
        """Print where the plans stand."""
        self.update()
        emit(self._session, read_plan_status(self._store, self._workdir, self._settings))
        if self.state.phase == "failed":
            why = "" if self.state.error in {"", _STOPPED} else f": {self.state.error}"
            raise Refused(
                f"the plans were stopped{why}",
                code="plans-stopped",
                hint=f"`uwf thread read {self._thread}` shows what was done",
                thread=self._thread,
            )
        if self.state.phase == "completed":
            return
        why = "they are paused" if self.state.is_paused else "for the end of an agent's limit"
        hint = "`uwf plan resume` goes on"
        if self.state.until_ms is not None:
            hint += "; --wait sleeps until the limit is over, --agent CMD has another agent work"
        if self.state.is_stuck:
            why = f"all tries failed: {self.state.error}"
            hint = "`uwf plan resume --continue -m HINT` gives all tries again, --stop ends it"
        elif self.state.phase == "waiting_human":
            why = "for the answer of a person"
            hint = f"`uwf thread answer {self._thread}`, then `uwf plan resume`"
        elif not self.state.is_paused and self.state.until_ms is None:
            tip = read_snapshot(self._store, get_head(self._store, self._thread).commit)
            if (reached := find_limit(self._store, tip)) is not None:
                raise reached
        raise AgentFailed(
            f"the plans wait: {why}", code="plans-wait", hint=hint, thread=self._thread
        )

    def _drive_elsewhere(self, port: int | None) -> None:
        # -P: modules in the working directory of the agents are not imported.
        words = [sys.executable, "-P", "-m", "uwf_git", "plan", "resume", "--format=text"]
        words += [f"--dir={self._workdir}", *([] if port is None else [f"--port={port}"])]
        words += ["--wait"] if self.waits else []
        request = DriverRequest(self._thread, lambda _thread: words, wait=self.waits)
        driver = start_driver(self._store, caller_of(self._session), request)
        emit(self._session, driver._asdict())
        note(
            "next: `uwf plan status` tells where the plans stand; "
            f"`uwf thread wait {self._thread}` waits until they stop"
        )


# What a person is told, and at a terminal asked, when the tries of a phase are used up.


def tell_failures(state: PlanState) -> None:
    """Note which phase has failed, and why each of its tries did."""
    what = "the planning" if state.stage == "planning" else "the execution"
    if state.current is not None:
        what += f" of {state.current.file}"
    note(f"{visible_line(what)} has failed:")
    for line in list_failures(state):
        note(f"  {visible_line(line)}")


def ask_person() -> str | None:
    """Ask whether to go on; return a hint for the next try, None to stop.

    Raises:
        KeyboardInterrupt: the person has left, by Ctrl-C or the end of the input.
    """
    while True:
        answer = ask("Continue with fresh tries (c), or stop (s)? ")
        if answer in {"s", "stop"}:
            return None
        if answer in {"c", "continue"}:
            return text_argument(ask("A hint for the next try (Enter: none): "), "the hint")
