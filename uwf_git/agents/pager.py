"""Show long text in the user's pager, as git does: a program that reads our standard output."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_DEFAULT = "less"
# As git: end if it fits one screen, keep colours, do not clear the screen.
_OPTIONS = {"LESS": "FRX", "LV": "-c"}


def choose_pager(environ: Mapping[str, str], setting: str | None) -> str | None:
    """Return the pager: $GIT_PAGER, core.pager, $PAGER, less; None to print directly."""
    if environ.get("TERM", "dumb") == "dumb":
        return None
    for command in (environ.get("GIT_PAGER"), setting, environ.get("PAGER")):
        if command is not None:
            return None if command.strip() in {"", "cat"} else command
    return _DEFAULT if shutil.which(_DEFAULT, path=environ.get("PATH")) else None


@contextmanager
def run_pager(command: str, environ: Mapping[str, str]) -> Iterator[int]:
    """Run *command* in a shell, yield its input's descriptor, close it, wait for the end."""
    read_end, into = os.pipe()
    try:
        # Through a shell, as git does: the command may have options.
        process = subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=read_end, env={**_OPTIONS, **environ}
        )
    finally:
        os.close(read_end)
    try:
        yield into
    finally:
        os.close(into)
        _wait(process)


def _wait(process: "subprocess.Popen[bytes]") -> None:
    while True:
        try:
            process.wait()
        except KeyboardInterrupt:
            # It is for the pager, which has the terminal.
            continue
        return
