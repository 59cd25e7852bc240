"""`uwf plan run` and `uwf plan resume`."""

import shlex
from typing import Any

import click

from uwf_git.cli.app.parameters import INPUT, Input, no_prompt, text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import note
from uwf_git.cli.plan.carry_out import (
    PLAN_EXITS,
    PlanDriver,
    background_option,
    listening,
    port_option,
)
from uwf_git.cli.plan.directory import (
    directory_option,
    find_directory,
    find_store_of,
    read_settings_of,
)
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.start import begin_thread
from uwf_git.commands.lifecycle.start import StartRequest
from uwf_git.commands.plan.plans import (
    WORKFLOW,
    find_plan_thread,
    hold_plans,
    prepare_plans,
    require_no_driver,
)
from uwf_git.commands.turn.known_agents import name_agent
from uwf_git.errors import BadUsage, Refused
from uwf_git.model.thread import ENDED
from uwf_git.plan.phases import MAX_RETRIES, PLAN_VERIFIER, VERIFIER
from uwf_git.plan.settings import DEFAULTS, PlanSettings

_HINT = "`uwf plan run TASK`, or `uwf plan run -f FILE`; `-` is standard input"


def _two_agents(names: str) -> BadUsage:
    return BadUsage(
        f"{names} exclude each other", code="two-agents", hint="--ai CMD runs CMD -p PROMPT"
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
    help=f"The tries in all, of the planning and of each plan.  [default: {MAX_RETRIES}]",
)
@click.option(
    "--plans",
    "has_plans",
    is_flag=True,
    help="Carry out the plan files that lie there; no planner.",
)
@port_option
@background_option
@click.option("--agent", metavar="CMD", help="Who plans and works, such as claude.")
@click.option("--verifier", metavar="CMD", help="Who verifies.  [default: the agent]")
@click.option("--ai", metavar="CMD", help="In place of --agent: called as CMD -p PROMPT.")
def run_command(  # noqa: PLR0913 (one parameter an option, as click wants it)
    session: Session,
    *,
    task: str | None,
    file: Input | None,
    directory: str | None,
    max_retries: int | None,
    has_plans: bool,
    port: int | None,
    background: bool,
    agent: str | None,
    verifier: str | None,
    ai: str | None,
) -> None:
    """Split a task into plan files, carry them out in order, and have each phase verified.

    A phase whose tries are used up waits for a person: at a terminal you are asked, elsewhere `uwf
    plan resume` decides. A directory has one such workflow, and no plan files before it begins,
    unless --plans takes them as they are; a task is then not needed. The settings uwf.plan.*
    (`uwf config list`) count where an option is not given.
    """
    prompt = None if has_plans and task is None and file is None else _read_task(task, file)
    if agent is not None and ai is not None:
        raise _two_agents("--agent and --ai")
    workdir = find_directory(session, directory)
    session = session._replace(cwd=workdir)
    store = session.open_store(create=True)
    settings = read_settings_of(session, store, workdir)
    request = StartRequest(
        WORKFLOW,
        f"Carry out the plans in {settings.plan_dir}." if prompt is None else prompt,
        _name_agents(agent, verifier, ai, settings),
        session.agent,
        workdir,
        needs_agents=True,
        state={
            "maxRetries": max_retries or settings.max_retries,
            "hasPlans": has_plans,
            **_find_state(settings),
        },
    )
    with listening(settings, port, elsewhere=background) as watch:
        with hold_plans(store):
            prepare_plans(store, workdir, settings, has_plans=has_plans)
            started = begin_thread(session, store, request)
        note(f"thread {started.thread}")
        driver = PlanDriver(session, store, workdir, started.thread, settings)
        driver.drive(watch, port=port, background=background)


def _find_state(settings: PlanSettings) -> dict[str, Any]:
    """Return what the workflow's own state has otherwise."""
    named = {
        "planDir": (settings.plan_dir, DEFAULTS.plan_dir),
        "statusFile": (settings.status_file, DEFAULTS.status_file),
        "timeouts": (settings.timeouts_ms, DEFAULTS.timeouts_ms),
    }
    return {name: value for name, (value, usual) in named.items() if value != usual}


def _read_task(task: str | None, file: Input | None) -> str:
    if (task is None) == (file is None):
        problem = "there is no task" if task is None else "the task is given twice, also by -f"
        raise no_prompt(problem, hint=_HINT)
    prompt = text_argument(task or "", "the task") if file is None else file.read_text()
    if not prompt.strip():
        raise no_prompt("the task is empty", hint=_HINT)
    return prompt.rstrip("\r\n")


def _name_agents(
    agent: str | None, verifier: str | None, ai: str | None, settings: PlanSettings
) -> tuple[str, ...]:
    """Return who plays, by what was typed and then by the settings."""
    if agent is None and ai is None:
        agent, ai = settings.agent, settings.ai
        if agent is not None and ai is not None:
            raise _two_agents("uwf.plan.agent and uwf.plan.ai")
    verifier = settings.verifier if verifier is None else verifier
    if ai is not None:
        agent = shlex.join(["uwf-cli", f"{text_argument(ai, '--ai')} -p {{prompt}}"])
    named = [] if agent is None else [_name(agent, "--agent")]
    if verifier is not None:
        named += [f"{role}={_name(verifier, '--verifier')}" for role in (PLAN_VERIFIER, VERIFIER)]
    return tuple(named)


def _name(agent: str, option: str) -> str:
    text = text_argument(agent, option)
    return text if text.lstrip().startswith("{") else name_agent(text)


def _nothing_to_resume(workdir: str) -> Refused:
    return Refused(
        f"there are no unfinished plans in {workdir}",
        code="nothing-to-resume",
        hint="`uwf plan run TASK` begins",
    )


@verb(
    "uwf plan resume",
    "uwf plan resume --continue -m 'the tests go into spec/'",
    "uwf plan resume --stop",
    exits=PLAN_EXITS,
)
@directory_option
@click.option("--continue/--stop", "choice", default=None, help="Give fresh tries, or end it.")
@click.option("-m", "--message", default="", metavar="HINT", help="For the next try, or why.")
@click.option(
    "--max-retries", type=click.IntRange(min=1), metavar="N", help="The tries in all from now on."
)
@port_option
@background_option
def resume_command(
    session: Session,
    *,
    directory: str | None,
    choice: bool | None,
    message: str,
    max_retries: int | None,
    port: int | None,
    background: bool,
) -> None:
    """Go on with the plans of a directory, after a crash, a pause, a limit or used-up tries.

    Where all tries are used up you are asked at a terminal; elsewhere --continue or --stop decides,
    and without one of them nothing happens but that the state is told.
    """
    hint = text_argument(message, "the message")
    workdir = find_directory(session, directory)
    store = find_store_of(session, workdir)
    settings = read_settings_of(session, store, workdir)
    found = None if store is None else find_plan_thread(store, workdir, settings)
    if store is None or found is None:
        raise _nothing_to_resume(workdir)
    thread = found.record.thread
    driver = PlanDriver(session, store, workdir, thread, settings)
    # Also of a thread that has ended: its last driver may have been killed before it told so.
    driver.update()
    if found.record.status in ENDED:
        raise _nothing_to_resume(workdir)
    if choice is False:
        driver.stop(hint)
        driver.tell_end()
        return
    require_no_driver(store, thread)
    # Before anything is changed: the port may be taken.
    with listening(settings, port, elsewhere=background) as watch:
        if max_retries is not None:
            driver.allow_tries(max_retries)
        if _make_ready(driver, hint, choice=choice):
            driver.drive(watch, port=port, background=background)
        else:
            driver.tell_end()


def _make_ready(driver: PlanDriver, hint: str, *, choice: bool | None) -> bool:
    """End what the plans wait for; return whether they may be driven then."""
    while driver.state.is_paused or driver.state.until_ms is not None:
        driver.end_pause(hint)
    if driver.state.is_stuck:
        if choice is None:
            return driver.ask()
        driver.go_on(hint)
        return True
    if choice and hint:
        note("note: no phase has failed, so no agent is told the hint")
    return driver.state.phase != "waiting_human"
