import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.ran import Ran

from uwf_git.cli.completion import SHELLS


@pytest.mark.parametrize("shell", SHELLS)
def test_script_is_for_both_programs(shell: str, ran: Callable[..., Ran]) -> None:
    done = ran("uwf_git", "completion", shell)

    assert (done.status, done.err) == (0, "")
    for words in ("_UWF_COMPLETE", "_JSON_CAS_COMPLETE", f"{shell}_complete"):
        assert words in done.out


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_accepts_the_script(shell: str, ran: Callable[..., Ran], tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    script = tmp_path / "script"
    script.write_text(ran("uwf_git", "completion", shell).out)

    subprocess.run([shell, "-n", script], check=True, capture_output=True)


def test_bash_completes_with_the_script(ran: Callable[..., Ran], tmp_path: Path) -> None:
    program = tmp_path / "uwf"
    program.write_text("#!/bin/sh\necho plain,thread; echo plain,there\n")
    program.chmod(0o755)
    script = ran("uwf_git", "completion", "bash").out
    ask = 'COMP_WORDS=(uwf th); COMP_CWORD=1; _uwf_completion "$0"; echo "${COMPREPLY[*]}"'
    done = subprocess.run(
        ["bash", "-c", script + ask, program], check=True, capture_output=True, text=True
    )

    assert done.stdout == "thread there\n"


def test_unknown_shell_is_refused_with_the_choices(ran: Callable[..., Ran]) -> None:
    done = ran("uwf_git", "completion", "tcsh")

    assert done.status == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.err
