"""Prompts: everything an agent is told, in one text.

The same context gives the same prompt. Each omission is noted with its size, and the text of
another agent is between marks that it cannot have written itself.
"""

import json
from typing import Any

from uwf_git.engine.answer_format import build_answer_format
from uwf_git.engine.try_words import build_try
from uwf_git.engine.turn_context import AgentContext, RoleView

DEFAULT_BUDGET = 120_000
"""Characters, some 30,000 tokens: room for the agent's own work in every current model."""

_MOST_OLDER = 50
"""Steps before the newest that are shown, so that a prompt costs the same at any depth."""

_LONGEST_META = 2_000
_LONGEST_HINT = 8_000


def build_prompt(context: AgentContext, *, budget: int = DEFAULT_BUDGET) -> str:
    """Build the prompt of a turn: the role, the task, the thread so far, how to answer.

    *budget* limits task, thread and state, in characters. The newest step is whole if it
    fits, up to 50 older ones with their meta, newest first; notes say what was left out and how to
    get it, and no step that is left out is read. The role's own words and the answer format are
    never cut.
    """
    task = _cut(context.start.prompt, budget // 2, context)
    given = "" if context.input is None else _cut(_as_text(context.input), budget // 4, context)
    files = _build_files(context, budget // 2)
    left = max(0, budget - len(task) - len(given) - sum(map(len, files)))
    state = _cut(_json(context.state), left // 4, context) if context.state else ""
    history = _build_history(context, left - len(state))
    role = context.current_role
    parts = [
        f"# You are {role.name}",
        role.description.strip(),
        role.system_prompt.strip(),
        "# The task",
        _mark("task", task),
        *(["# What this turn is about", _mark("input", given)] if given else []),
        *files,
        "# Where you are",
        _build_position(context),
        *history,
        *(["# The state of the thread", _mark("state", state)] if state else []),
        *build_try(context, _mark, lambda text, limit: _cut(text, limit, context), _as_text),
        *_build_hint(context),
        *_build_last_error(context),
        "# How to answer",
        *_build_output_file(role),
        build_answer_format(role),
        *_build_checks(role),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _build_position(context: AgentContext) -> str:
    workflow, role = context.workflow, context.current_role.name
    turn = "your first turn" if context.visit == 1 else f"your {_ordinal(context.visit)} turn"
    number = max(context.depth, len(context.steps)) + 1
    thread = f"This is step {number} of a thread of the workflow {workflow.name}"
    lines = [f"{thread}, and {turn} as {role}."]
    if context.node is not None and context.node.label != role:
        lines.append(f"You act as its node {context.node.label}.")
    if context.iteration:
        lines.append(f"It is the {_ordinal(context.iteration + 1)} pass of the loop around it.")
    if context.start.entry is not None:
        lines.append("You work in a branch; other agents work in others at the same time.")
    if workflow.description:
        lines.append(f"What the workflow is for: {_one_line(workflow.description)}")
    if context.workdir:
        lines.append(f"You work in the directory {context.workdir}.")
    return "\n".join(lines)


def _build_files(context: AgentContext, budget: int) -> list[str]:
    """Show the files that the turn is given; of those that are too long together, parts."""
    if not context.input_files:
        return []
    parts = ["# Files that you are given"]
    left, room = budget, {}
    for count, file in enumerate(sorted(context.input_files, key=lambda each: len(each.content))):
        room[file.path] = left // (len(context.input_files) - count)
        left -= min(len(file.content), room[file.path])
    for file in context.input_files:
        if file.problem is not None:
            parts.append(f"## {file.path}\n\n(It {file.problem}.)")
            continue
        whole = f"the file {file.path} has all of it"
        text = _shorten(file.content, room[file.path], whole)
        parts.append(f"## {file.path}\n\n{_mark('file', text)}")
    return parts


def _build_hint(context: AgentContext) -> list[str]:
    if not context.hint:
        return []
    hint = _mark("hint", _cut(context.hint, _LONGEST_HINT, context))
    return ["# A hint", "A person who watches this thread says to you:", hint]


def _build_last_error(context: AgentContext) -> list[str]:
    if context.last_error is None:
        return []
    error = context.last_error
    attempt = f"This is attempt {context.attempt} at this step."
    return [
        "# The last attempt failed",
        f"{attempt} The last one failed because of this ({error.kind}):",
        _mark("error", _cut(error.message, _LONGEST_META, context)),
        *_build_check_output(error.output, context),
        "Try another way, so that it does not fail again.",
    ]


def _build_check_output(output: str, context: AgentContext) -> list[str]:
    if not output:
        return []
    return ["What the check printed:", _mark("output", _cut(output, _LONGEST_HINT, context))]


def _build_output_file(role: RoleView) -> list[str]:
    if role.output_file is None:
        return []
    said = f"Before you end, write the fields as one JSON object into {role.output_file}, a file of"
    return [f"{said} the work directory: it is read first. If you cannot, answer as follows."]


def _build_checks(role: RoleView) -> list[str]:
    if not role.checks:
        return []
    said = "Your answer is taken only if these commands then succeed in the work directory:"
    return [said, _mark("checks", "\n".join(role.checks))]


def _build_history(context: AgentContext, budget: int) -> list[str]:
    # A context may have only the last steps of its thread.
    count = max(context.depth, len(context.steps))
    if count == 0:
        return ["Nothing has been done yet: yours is the first step."]
    if not context.steps:
        return [f"The steps before yours are left out; {_whole(context)}."]
    last = _build_newest(context, count, budget * 3 // 4)
    heading = "# The thread so far, oldest step first"
    if count == 1:
        return [heading, last]
    note = f"The texts of the steps before the newest are left out; {_whole(context)}."
    return [heading, note, *_build_older(context, count, budget - len(last)), last]


def _build_newest(context: AgentContext, count: int, budget: int) -> str:
    step = context.steps[-1]
    meta = _cut(_json(step.meta), budget // 4, context)
    content = _cut(step.content, budget - len(meta), context)
    heading = f"## Step {count}, the newest: {step.role}"
    parts = [heading, _mark("meta", meta)]
    return "\n\n".join([*parts, _mark("content", content)] if content else parts)


def _build_older(context: AgentContext, count: int, budget: int) -> list[str]:
    """Show the steps before the newest, as many of the latest as there is room for."""
    shown: list[str] = []
    left_out = count - 1
    for step in reversed(context.steps[-_MOST_OLDER - 1 : -1]):
        meta = _mark("meta", _cut(_json(step.meta), _LONGEST_META, context))
        size = f", {len(step.content):,} characters of text" if step.content else ""
        text = f"## Step {left_out}: {step.role}{size}\n\n{meta}"
        budget -= len(text)
        if budget < 0:
            break
        shown.append(text)
        left_out -= 1
    if left_out:
        shown.append(f"[… the first {left_out:,} steps are left out; {_whole(context)} …]")
    return shown[::-1]


def _cut(text: str, limit: int, context: AgentContext) -> str:
    return _shorten(text, limit, _whole(context))


def _shorten(text: str, limit: int, whole: str) -> str:
    """Keep the beginning and the end of a text that is too long, with a note between them.

    *whole* says where all of it is.
    """
    if len(text) <= limit:
        return text
    head, tail = max(0, limit * 2 // 3), max(0, limit // 3)
    left_out = len(text) - head - tail
    note = f"\n[… {left_out:,} characters left out; {whole} …]\n"
    return text[:head] + note + text[len(text) - tail :]


def _whole(context: AgentContext) -> str:
    return f"`uwf thread context {context.thread_id}` prints all of it"


def _mark(tag: str, text: str) -> str:
    """Put *text* between tags that do not occur in it, in whatever spelling."""
    folded = text.casefold()
    while f"<{tag}" in folded or f"</{tag}" in folded:
        tag += "-"
    ending = "" if text.endswith("\n") else "\n"
    return f"<{tag}>\n{text}{ending}</{tag}>"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _ordinal(number: int) -> str:
    is_teen = 10 < number % 100 < 20  # noqa: PLR2004 (11th, 12th, 13th)
    ending = "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
