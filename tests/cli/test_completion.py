import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.program import Ran, Uwf
from programs import write_program

from uwf_git.cli.config import SHELLS


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_accepts_the_script(shell: str, ran: Callable[..., Ran], tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    script = tmp_path / "script"
    script.write_text(ran("uwf_git", "completion", shell).out)

    subprocess.run([shell, "-n", script], check=True, capture_output=True)


def test_bash_completes_with_the_script(ran: Callable[..., Ran], tmp_path: Path) -> None:
    program = write_program(tmp_path / "uwf", "echo plain,thread; echo plain,there")
    script = ran("uwf_git", "completion", "bash").out
    ask = 'COMP_WORDS=(uwf th); COMP_CWORD=1; _uwf_completion "$0"; echo "${COMPREPLY[*]}"'
    done = subprocess.run(
        ["bash", "-c", script + ask, program], check=True, capture_output=True, text=True
    )

    assert done.stdout == "thread there\n"
    # Where uwf has no word, files.
    assert "complete -o nosort -o bashdefault -o default -F _uwf_completion uwf" in script


# What prints the words that the shell would offer after `uwf thread show 0`. zsh offers words only
# at a terminal, so its functions that take them print them here.
ASK = {
    "bash": "source SCRIPT; COMP_WORDS=(uwf thread show 0); COMP_CWORD=3; _uwf_completion uwf; "
    'printf "%s\\n" "${COMPREPLY[@]}"',
    "zsh": "compdef() { : }; compadd() { : }; _describe() { print -l -- ${(P)3} }; source SCRIPT; "
    "words=(uwf thread show 0); CURRENT=4; _uwf_completion",
    "fish": "source SCRIPT; complete -C 'uwf thread show 0'",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_completes_a_thread(shell: str, uwf: Uwf, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    thread = uwf.begun()
    script = tmp_path / "script"
    script.write_text(uwf("completion", shell).out)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    done = subprocess.run(
        [shell, "-c", ASK[shell].replace("SCRIPT", str(script))],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "UWF_REPO": str(uwf.session.repo)},
    )

    # bash shows no meanings; zsh and fish do.
    assert done.stdout.startswith(thread), done.stderr
    assert ("ready, demo: Do it." in done.stdout) is (shell != "bash")
