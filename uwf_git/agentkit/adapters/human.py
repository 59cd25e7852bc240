"""uwf-human: a person at the terminal plays a role.

Owns: what a person is shown, and the order of the questions.
Knows nothing of: how a terminal is found (terminal.py), what a field's question is (form.py).
Always true: a person is asked for what an agent would be asked for, and held to the same schema;
whoever leaves (Ctrl-C) has handed in nothing.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable

from uwf_git.agentkit.context import AgentContext, Step
from uwf_git.agentkit.form import Asker, fill_form
from uwf_git.agentkit.result import AgentResult
from uwf_git.agentkit.running import create_agent
from uwf_git.agentkit.step_files import write_prompt
from uwf_git.agentkit.terminal import Terminal

_HELP = """\
Usage: uwf-human THREAD-ID

Let a person play a role, at the terminal in which `uwf thread step` or `uwf run` was called.
The task and the last step are shown, then each field of the role is asked for and checked, then
a text. Ctrl-C leaves without handing in anything. The engine appends the thread id;
`-t THREAD-ID -r ROLE` is understood as well.

Example: uwf thread start solve-issue -p "fix #42" --agent uwf-claude --agent reviewer=uwf-human

UWF_TTY names the terminal if it is not our own; VISUAL or EDITOR is the editor.

EXIT STATUS: 0 there is a result; 1 there is none; 130 whoever was asked has left.
"""

_LONGEST_SHOWN = 20_000

_TEXT_QUESTION = """\
Your text, for those who read on. It ends at a line with nothing but a dot, or at Ctrl-D;
:e opens an editor.
"""

Edit = Callable[[str], str | None]


def play(context: AgentContext) -> AgentResult:
    """Ask a person for the role's result.

    Raises:
        NoTerminal: there is nobody to ask.
        Left: there is nobody any more.
    """
    terminal = Terminal(os.environ)
    try:
        shown = build_page(context)
        write_prompt(os.environ.get("UWF_STEP_DIR") or None, shown)
        terminal.say(shown)
        return ask_person(terminal, context, edit=lambda text: _edit(terminal, text))
    finally:
        terminal.close()


def build_page(context: AgentContext) -> str:
    """Give what a person is shown before the questions."""
    role = context.current_role
    number = f"step {context.depth + 1} of {context.workflow.name}, thread {context.thread_id}"
    parts = [f"\n===== Your turn as {role.name} ({number}) =====", role.description]
    parts += [role.system_prompt, f"----- The task -----\n{context.start.prompt}"]
    if context.steps:
        parts.append(_tell_step(context.steps[-1]))
    if context.last_error is not None:
        parts.append(f"The last attempt failed: {context.last_error.message}")
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n\n"


def ask_person(asker: Asker, context: AgentContext, *, edit: Edit) -> AgentResult:
    """Ask for the fields and the text, until whoever is asked wants to hand them in."""
    meta, content = None, ""
    while True:
        asker.say(f"----- Your answer as {context.current_role.name} -----\n")
        meta = fill_form(asker, context.current_role.output_schema, before=meta)
        content = _ask_text(asker, content, edit)
        asker.say(f"\n{json.dumps(meta, ensure_ascii=False, indent=2)}\n")
        line = asker.read_line("Hand this in? [Y/n] ")
        if line is not None and line.strip().lower() in ("", "y", "yes"):
            return AgentResult(meta, content, rung="asked")


def _tell_step(step: Step) -> str:
    content = step.content.strip()
    if len(content) > _LONGEST_SHOWN:
        content = f"{content[:_LONGEST_SHOWN]}\n[… `uwf thread read` shows all of it]"
    meta = json.dumps(step.meta, ensure_ascii=False, indent=2)
    return f"----- The last step, by {step.role} -----\n{meta}\n\n{content}"


def _ask_text(asker: Asker, before: str, edit: Edit) -> str:
    kept = "Enter and a dot: as before.\n" if before else ""
    asker.say(f"{_TEXT_QUESTION}{kept}")
    lines: list[str] = []
    while (line := asker.read_line("| ")) not in (None, "."):
        if line == ":e":
            edited = edit("\n".join(lines) or before)
            if edited is not None:
                return edited.strip("\n")
        else:
            lines.append(line or "")
    return "\n".join(lines).strip("\n") or before


def _edit(terminal: Terminal, text: str) -> str | None:
    """Let *text* be changed in $VISUAL or $EDITOR, else vi; None if that failed."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="uwf-human-") as folder:
        path = os.path.join(folder, "answer.md")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        # As git does: the variable may hold options, and a shell splits them.
        ran = subprocess.run(
            ["/bin/sh", "-c", f"{editor} {shlex.quote(path)}"],
            stdin=terminal.descriptor,
            stdout=terminal.descriptor,
            stderr=terminal.descriptor,
            check=False,
        )
        if ran.returncode == 0:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
    terminal.say(f"the editor ({editor}) failed with exit status {ran.returncode}\n")
    return None


def main() -> int:
    """Be the program uwf-human."""
    if sys.argv[1:2] in (["-h"], ["--help"]):
        sys.stdout.write(_HELP)
        return 0
    return create_agent(play)()


if __name__ == "__main__":
    sys.exit(main())
