"""Parts of a report: badges, facts, excerpts, amounts."""

from collections.abc import Iterable
from typing import Any

from uwf_git.agents.command_line import agent_name
from uwf_git.model.text import render_duration
from uwf_git.web.elements import code, escape_line, folded, json_fields, preformatted
from uwf_git.web.markdown import render_markdown

_KIB = 1024
_LONGEST_COMMAND = 100
_SIGNS = {
    "completed": ("good", "✓"),
    "failed": ("bad", "✗"),
    "killed": ("bad", "✗"),
    "waiting": ("wait", "?"),
    "paused": ("wait", "‖"),
    "split": ("soft", "⑂"),
    "damaged": ("bad", "✗"),
    "unreadable": ("bad", "✗"),
}


def badge(status: str) -> str:
    """Return a status with its sign; colour alone says nothing."""
    kind, sign = _SIGNS.get(status, ("soft", "▶"))
    return f'<span class="badge {kind}">{sign} {escape_line(status)}</span>'


def facts(told: Iterable[str]) -> str:
    """Return small print: a row of HTML pieces; empty ones are left out."""
    items = "".join(f"<li>{each}</li>\n" for each in told if each)
    return f'<ul class="facts">\n{items}</ul>\n' if items else ""


def render_excerpt(excerpt: dict[str, Any] | None, *, top: int | None = None) -> str:
    """Return the text of an excerpt, and what git prints where it is cut.

    With *top* the text is Markdown whose headings begin at that level.
    """
    if excerpt is None:
        return ""
    if "problem" in excerpt:
        return tell_problem(excerpt["problem"])
    text = excerpt["text"]
    shown = preformatted(text)
    if top is not None:
        shown = f'<div class="content">\n{render_markdown(text, top=top)}</div>\n'
    return f"{shown}{_tell_cut(excerpt)}" if text else ""


def render_value(excerpt: dict[str, Any]) -> str:
    """Return the JSON value of an excerpt, or the beginning of its text."""
    return json_fields(excerpt["value"]) if "value" in excerpt else render_excerpt(excerpt)


def tell_problem(message: str) -> str:
    """Return what cannot be read."""
    return f'<p class="problem"><strong class="bad">✗</strong> {escape_line(message)}</p>\n'


def _tell_cut(excerpt: dict[str, Any]) -> str:
    if not excerpt["isCut"]:
        return ""
    shown, whole = render_size(len(excerpt["text"].encode())), render_size(excerpt["bytes"])
    command = code(excerpt["command"])
    return f'<p class="aside">The first {shown} of {whole}; all of it: {command}</p>\n'


def render_size(count: int) -> str:
    """Return a number of bytes for people."""
    return f"{count} bytes" if count < _KIB else f"{count / _KIB:.0f} KB"


def is_played(entry: dict[str, Any]) -> bool:
    """Check whether an agent or a person played the step or attempt; a join follows by itself."""
    return bool(entry.get("agent")) and entry["event"] != "join"


def render_command(command: str) -> str:
    """Return an agent's command; one of several lines, or a long one, below its program, folded."""
    if len(command) <= _LONGEST_COMMAND and "\n" not in command:
        return code(command)
    return folded(code(agent_name(command)), preformatted(command))


def render_tokens(count: int) -> str:
    """Return a number of tokens; "" for none: then no agent reported any."""
    return f"{count:,}" if count else ""


def render_cost(cost: float | None) -> str:
    """Return a cost in US dollars; "" for None."""
    if cost is None:
        return ""
    return f"{cost:,.2f}" if cost >= 1 or not cost else f"{cost:.4f}"


def render_ms(duration_ms: Any) -> str:
    """Return a duration; "" if it was not told."""
    return render_duration(duration_ms) if isinstance(duration_ms, int) else ""
