"""Ask a person to play a role at the terminal: the prompt, then question by question.

A person gets the same prompt as an agent and is held to the same schema.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from uwf_git.engine.form import CheckAnswer, FormIO, fill_form
from uwf_git.engine.turn_context import AgentContext, RoleView, Step

_LONGEST_SHOWN = 20_000

_TEXT_QUESTION = """\
Your text. It ends at a line that is only a dot, or at Ctrl-D;
:e opens an editor.
"""

Edit = Callable[[str], str | None]
"""Opens a text in an editor; returns None if that failed."""


class FilledForm(NamedTuple):
    """A person's answer."""

    meta: Any
    content: str


def build_page(context: AgentContext) -> str:
    """Return the text that a person sees before the questions."""
    role = context.current_role
    number = f"step {context.depth + 1} of {context.workflow.name}, thread {context.thread_id}"
    parts = [f"\n===== Your turn as {role.name} ({number}) =====", role.description]
    parts += [role.system_prompt, f"----- The task -----\n{context.start.prompt}"]
    if context.steps:
        parts.append(_tell_step(context.steps[-1]))
    if context.hint is not None:
        parts.append(f"A hint for you: {context.hint}")
    if context.last_error is not None:
        parts.append(f"The last attempt failed: {context.last_error.message}")
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n\n"


def ask_person(asker: FormIO, role: RoleView, *, check: CheckAnswer, edit: Edit) -> FilledForm:
    """Ask for the fields and the text until the person hands them in."""
    meta, content = None, ""
    while True:
        asker.say(f"----- Your answer as {role.name} -----\n")
        meta = fill_form(asker, role.output_schema, check=check, before=meta)
        content = _ask_text(asker, content, edit)
        asker.say(f"\n{json.dumps(meta, ensure_ascii=False, indent=2)}\n")
        line = asker.read_line("Hand this in? [Y/n] ")
        if line is not None and line.strip().lower() in ("", "y", "yes"):
            return FilledForm(meta, content)


def _tell_step(step: Step) -> str:
    content = step.content.strip()
    if len(content) > _LONGEST_SHOWN:
        content = f"{content[:_LONGEST_SHOWN]}\n[… `uwf thread read` shows all of it]"
    meta = json.dumps(step.meta, ensure_ascii=False, indent=2)
    return f"----- The last step, by {step.role} -----\n{meta}\n\n{content}"


def _ask_text(asker: FormIO, before: str, edit: Edit) -> str:
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
