"""uwf-human: a person at the terminal plays a role while the step runs.

A role that is bound to ``human`` needs no terminal: its thread waits. Ctrl-C submits nothing.
"""

import os
import sys

from uwf_git.agentkit.ladder import find_misfit
from uwf_git.agentkit.running import create_agent, make_main
from uwf_git.agentkit.turn import AgentResult, record_prompt
from uwf_git.agents.terminal import Terminal, edit_text
from uwf_git.commands.control.answer import ask_person, build_page
from uwf_git.engine.turn_context import AgentContext

_HELP = """\
Usage: uwf-human THREAD-ID

Let a person play a role, at the terminal in which `uwf thread step` or `uwf run` was called.
The task and the last step are shown, then each field of the role is asked for and checked, then
a text. Ctrl-C leaves without handing in anything. The engine appends the thread id;
`-t THREAD-ID -r ROLE` is understood as well.

Example: uwf thread start solve-issue -p "fix #42" --agent uwf-claude --agent reviewer=uwf-human

With `--agent reviewer=human` no terminal is needed: the thread waits for `uwf thread answer`.

UWF_TTY names another terminal; VISUAL or EDITOR is the editor.

EXIT STATUS: 0 there is a result; 1 there is none; 130 the person left.
"""


def play(context: AgentContext) -> AgentResult:
    terminal = Terminal(os.environ, note=lambda line: sys.stderr.write(f"{line}\n"))
    try:
        shown = build_page(context)
        record_prompt(shown)
        terminal.say(shown)
        given = ask_person(
            terminal,
            context.current_role,
            check=find_misfit,
            edit=lambda text: edit_text(terminal, text, environ=os.environ),
        )
        return AgentResult(given.meta, given.content, rung="asked")
    finally:
        terminal.close()


main = make_main(_HELP, lambda _: create_agent(play)())
