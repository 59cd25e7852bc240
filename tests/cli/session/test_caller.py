import subprocess
import sys
from pathlib import Path

import pytest
from agentkit.person import Person

from uwf_git.cli.caller import caller_of, terminal_caller, without_password_prompt
from uwf_git.cli.session import Session


@pytest.mark.parametrize("terminals", [(True, True), (True, False), (False, True), (False, False)])
def test_only_a_person_at_a_terminal_is_asked(
    session: Session, terminals: tuple[bool, bool]
) -> None:
    reads, shows = terminals
    caller = without_password_prompt(session._replace(stdin_is_tty=reads, stderr_is_tty=shows))
    asked = caller.environ.get("GIT_TERMINAL_PROMPT") != "0"
    assert asked == (reads and shows)
    assert dict(session.environ).items() <= dict(caller.environ).items()


def test_format_that_a_person_prefers_is_none_of_the_agents(session: Session) -> None:
    there = session._replace(environ={"UWF_FORMAT": "text", "UWF_REPO": "a"})

    assert dict(caller_of(there).environ) == {"UWF_REPO": "a"}


TELL = (
    "import os, sys; from uwf_git.cli.session import read_session;"
    "from uwf_git.cli.caller import terminal_caller;"
    "print('[' + terminal_caller(read_session(os.environ)).environ.get('UWF_TTY', '-') + ']')"
)
IN_A_CHILD = (
    "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', "
    f"{TELL!r}], %s).returncode)"
)


def seen(program: str, place: Path) -> tuple[str, str]:
    """Run a Python program at a terminal; return the terminal's name and the output."""
    me = Person("-c", program, cwd=place)
    try:
        status, shown = me.end()
    finally:
        me.leave()
    assert status == 0, shown
    return me.name, shown.strip()


def test_terminal_in_front_of_us_is_named(tmp_path: Path) -> None:
    name, shown = seen(TELL, tmp_path)

    assert shown == f"[{name}]"


def test_terminal_is_found_by_any_stream(tmp_path: Path) -> None:
    name, shown = seen(IN_A_CHILD % "stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL", tmp_path)

    assert shown == f"[{name}]"


def test_terminal_of_a_job_in_the_background_is_not_ours(tmp_path: Path) -> None:
    assert seen(IN_A_CHILD % "process_group=0", tmp_path)[1] == "[-]"


def test_without_a_terminal_the_environment_stays_as_it_is(session: Session) -> None:
    environ = {"UWF_TTY": "/dev/pts/99"}
    assert terminal_caller(session._replace(environ=environ)).environ == environ
    ran = subprocess.run(
        [sys.executable, "-c", TELL], stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    assert ran.stdout == b"[-]\n"
