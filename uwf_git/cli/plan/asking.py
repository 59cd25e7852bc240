"""What a person is told, and at a terminal asked, when the tries of a phase are used up."""

import sys
from typing import NamedTuple

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.output.render import note
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import write_stderr
from uwf_git.model.text import visible_line
from uwf_git.plan.phases import PlanState, list_failures


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
