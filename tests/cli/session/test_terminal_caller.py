import subprocess
import sys
from pathlib import Path

from agentkit.person import Person

from uwf_git.cli.session.caller import terminal_caller
from uwf_git.cli.session.settings import Session

TELL = (
    "import os, sys; from uwf_git.cli.session.settings import read_session;"
    "from uwf_git.cli.session.caller import terminal_caller;"
    "print('[' + terminal_caller(read_session(os.environ)).environ.get('UWF_TTY', '-') + ']')"
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
    program = (
        "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', "
        f"{TELL!r}], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode)"
    )
    name, shown = seen(program, tmp_path)

    assert shown == f"[{name}]"


def test_terminal_of_a_job_in_the_background_is_not_ours(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', "
        f"{TELL!r}], process_group=0).returncode)"
    )

    assert seen(program, tmp_path)[1] == "[-]"


def test_without_a_terminal_the_environment_stays_as_it_is(session: Session) -> None:
    environ = {"UWF_TTY": "/dev/pts/99"}
    assert terminal_caller(session._replace(environ=environ)).environ == environ
    ran = subprocess.run(
        [sys.executable, "-c", TELL], stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    assert ran.stdout == b"[-]\n"
