"""The terminal of a person who is asked, also for an agent that was started without one.

An agent runs in a session of its own with stdin from /dev/null, so it has no /dev/tty. The
engine passes the device's name in UWF_TTY. As it is not the session's terminal, job control
does not stop readers, and Ctrl-C goes to the engine, which ends the agent. The terminal's
settings are never changed, shown text cannot move the cursor, and a lock keeps two agents from
asking at once.
"""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from uwf_git.errors import Refused
from uwf_git.model.text import visible_block

with suppress(ImportError):
    # Windows has none, and no such terminals.
    import fcntl

VARIABLE = "UWF_TTY"

_OWN = "/dev/tty"
# A terminal keeps no more of a line (Linux: N_TTY_BUF_SIZE - 1), and drops the rest silently.
_LONGEST_LINE = 4095
_TOO_LONG = """
That line was left out: a terminal keeps 4,095 bytes of a line, and drops the rest.
Give less; a text may have several lines, and :e opens an editor for it.
"""
_NOT_UTF_8 = """
That is not UTF-8 text, and was left out: type it where the terminal sends UTF-8.
"""
_SAVED_OTHERWISE = "What was saved is not UTF-8 text: Enter edits it again, Ctrl-D leaves it out. "
_MOST_ENDS = 3


class NoTerminal(Refused):
    code = "no-terminal"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"cannot ask a person: {problem}",
            hint="call `uwf thread step` or `uwf run` yourself, in the foreground of a terminal",
        )


def _terminal_closed() -> Refused:
    return Refused(
        "no answer: Ctrl-D was typed again and again, or the terminal was closed",
        code="left",
        kind="interrupted",
    )


class Terminal:
    """An open terminal, locked against other agents until it is closed."""

    def __init__(self, environ: Mapping[str, str], *, note: Callable[[str], object]) -> None:
        """Open and lock the terminal of UWF_TTY, else our own; *note* tells of a wait for it."""
        path = environ.get(VARIABLE) or _OWN
        try:
            self.descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOCTTY", 0))
        except OSError as error:
            problem = (error.strerror or str(error)).lower()
            raise NoTerminal(f"there is no terminal ({path}: {problem})") from error
        if not os.isatty(self.descriptor):
            os.close(self.descriptor)
            raise NoTerminal(f"{path} is not a terminal")
        self._ends = 0
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note("another agent is asking at this terminal; waiting")
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)

    def close(self) -> None:
        os.close(self.descriptor)

    def say(self, text: str) -> None:
        left = visible_block(text).encode()
        try:
            while left:
                left = left[os.write(self.descriptor, left) :]
        except OSError as error:
            raise _terminal_closed() from error

    def read_line(self, prompt: str = "> ") -> str | None:
        """Return a line without its line feed; None for Ctrl-D."""
        while line := self._read_bytes(prompt):
            self._ends = 0
            try:
                return line.decode().rstrip("\r\n")
            except UnicodeDecodeError:
                self.say(_NOT_UTF_8)
        # A closed terminal returns end of file for ever; a person types Ctrl-D once or twice.
        self._ends += 1
        if self._ends > _MOST_ENDS:
            raise _terminal_closed()
        self.say("\n")
        return None

    def _read_bytes(self, prompt: str) -> bytes:
        self.say(prompt)
        try:
            while len(line := os.read(self.descriptor, 16 * _LONGEST_LINE)) >= _LONGEST_LINE:
                self.say(f"{_TOO_LONG}{prompt}")
        except OSError as error:
            raise _terminal_closed() from error
        return line


# Edit a longer text in the user's editor.


def edit_text(terminal: Terminal, text: str, *, environ: Mapping[str, str]) -> str | None:
    """Return *text* as edited in $VISUAL, $EDITOR or vi; None if that failed, which is shown.

    What is saved in another encoding than UTF-8 is edited again, unless Ctrl-D is typed.
    """
    editor = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="uwf-answer-") as folder:
        path = os.path.join(folder, "answer.md")
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        while True:
            # Through a shell, as git does: the variable may hold options.
            ran = subprocess.run(
                ["/bin/sh", "-c", f"{editor} {shlex.quote(path)}"],
                stdin=terminal.descriptor,
                stdout=terminal.descriptor,
                stderr=terminal.descriptor,
                env=environ,
                check=False,
            )
            if ran.returncode:
                break
            with suppress(UnicodeDecodeError), open(path, encoding="utf-8") as file:
                return file.read()
            if terminal.read_line(_SAVED_OTHERWISE) is None:
                return None
    terminal.say(f"the editor ({editor}) failed with exit status {ran.returncode}\n")
    return None


# Show long text in the user's pager, as git does: a program that reads our standard output.

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
        while process.returncode is None:
            # Ctrl-C is for the pager, which has the terminal.
            with suppress(KeyboardInterrupt):
                process.wait()
