"""The editor: a longer text, written by a person in the program that they like.

Owns: which program that is, and the file that it is given.
Knows nothing of: what the text is for. Always true: a program that fails costs nothing that was
there before it.
"""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping

from uwf_git.agents.terminal import Terminal


def edit_text(terminal: Terminal, text: str, *, environ: Mapping[str, str]) -> str | None:
    """Let *text* be changed in $VISUAL or $EDITOR, else vi; None if that failed, which is told.

    Raises:
        Left: the terminal is gone.
    """
    editor = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="uwf-answer-") as folder:
        path = os.path.join(folder, "answer.md")
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        # As git does: the variable may hold options, and a shell splits them.
        ran = subprocess.run(
            ["/bin/sh", "-c", f"{editor} {shlex.quote(path)}"],
            stdin=terminal.descriptor,
            stdout=terminal.descriptor,
            stderr=terminal.descriptor,
            env=environ,
            check=False,
        )
        if ran.returncode == 0:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
    terminal.say(f"the editor ({editor}) failed with exit status {ran.returncode}\n")
    return None
