"""`uwf plan resume`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import note
from uwf_git.cli.plan.carry_out import PLAN_EXITS, PlanDriver, background_option
from uwf_git.cli.plan.directory import (
    directory_option,
    find_directory,
    find_store_of,
    read_settings_of,
)
from uwf_git.cli.plan.listening import listening, port_option
from uwf_git.cli.session.settings import Session
from uwf_git.commands.plan.plans import find_plan_thread, require_no_driver
from uwf_git.errors import Refused
from uwf_git.model.thread import ENDED


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
def command(
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
