"""The events of a thread in a report, in order, and their parts; branches stand at the split."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from uwf_git.agents.command_line import agent_name
from uwf_git.engine.masking import mask_keys
from uwf_git.model.event_folds import count_attempts, describe_files
from uwf_git.model.event_rules import STEPS
from uwf_git.model.limits import count_tokens, find_cost
from uwf_git.model.text import render_duration, render_time, visible_block
from uwf_git.web.elements import (
    WIDE,
    code,
    difference,
    escape_line,
    fields,
    folded,
    json_fields,
    line,
    preformatted,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# Markdown of agents as HTML, safely: no HTML of theirs, no image, no address but a web link.
#
# All that they wrote is to be seen: link definitions, which Markdown hides, are shown as text,
# and what is too long, or nested deeper than the parser goes, as it was typed. Only keys are not:
# what is shown is searched for them once more, since an entity or a mark can hide one in what is
# typed. Source: CommonMark 0.31; tables and strikethrough as on GitHub.

_LONGEST_BYTES = 64 * 1024
# A table of 160 KB took four seconds.
_MOST_CELLS = 2000
_DEEPEST = 20
_LOWEST_HEADING = 6
_LINK = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_KEPT = {"a": ("href",), "ol": ("start",)}
"""The attributes that an element keeps."""

_MARK = re.compile(
    r"^ {0,3}(?:#{1,6} |[-*+] |\d{1,9}[.)] |>|```|~~~|\|)|\*\*|\]\(|`[^`\n]+`", re.MULTILINE
)
_ALIGNED = re.compile(r"^(?:[ \t]+\S|[{\[<])|\S(?:\t| {2,})\S", re.MULTILINE)


def render_markdown(text: str, *, top: int) -> str:
    """Return *text* as HTML, its headings from level *top* on; columns without marks keep lines."""
    is_long = len(text.encode(errors="replace")) > _LONGEST_BYTES or text.count("|") > _MOST_CELLS
    if is_long or (_ALIGNED.search(text) and not _MARK.search(text)):
        return preformatted(text)
    parser = _make_parser()
    tokens = parser.parse(visible_block(text))
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        return preformatted(text)
    _lower_headings(tokens, top)
    _clean(tokens)
    made: str = parser.renderer.render(tokens, parser.options, {})
    return made


@cache
def _make_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 (50 ms; for reports and pages only)

    options = {"html": False, "breaks": True, "maxNesting": _DEEPEST}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.disable(["image", "reference"])
    # One that is too wide is scrolled by itself.
    parser.add_render_rule("table_open", lambda *_args: f"{WIDE.format('Table')}<table>\n")
    parser.add_render_rule("table_close", lambda *_args: "</table></div>\n")
    parser.add_render_rule("fence", _render_fence)
    # Source: "Security" in the documentation of markdown-it.
    setattr(parser, "validateLink", _is_link)  # noqa: B010 (for types it is a method)
    return parser


def _render_fence(_renderer: object, tokens: "Sequence[Token]", at: int, *_args: object) -> str:
    """Return a block of code, below what stands behind the fence: mostly its language."""
    info = tokens[at].info.strip()
    label = f"<p><code>{escape(info, quote=False)}</code></p>\n" if info else ""
    return f"{label}<pre><code>{escape(tokens[at].content, quote=False)}</code></pre>\n"


def _is_link(address: str) -> bool:
    return _LINK.match(address.strip()) is not None


def _lower_headings(tokens: "Sequence[Token]", top: int) -> None:
    headings = [token for token in tokens if token.type in {"heading_open", "heading_close"}]
    ranks = sorted({token.tag for token in headings})
    for token in headings:
        token.tag = f"h{min(top + ranks.index(token.tag), _LOWEST_HEADING)}"


def _clean(tokens: "Sequence[Token]") -> None:
    """Spell out what entities stood for, and drop attributes."""
    for token in tokens:
        token.content = visible_block(token.content)
        # How a column is aligned would be a style.
        token.info = visible_block(token.info)
        attributes: dict[str, Any] = token.attrs
        token.attrs = {
            name: attributes[name] for name in _KEPT.get(token.tag, ()) if name in attributes
        }
        if token.type == "link_open":
            token.attrs["rel"] = "noopener noreferrer nofollow"
        if token.children:
            _clean(token.children)
            token.children = _mask_shown(token.children)


def _mask_shown(children: "list[Token]") -> "list[Token]":
    """Return a paragraph without its marks if a key is seen only where they are gone."""
    from markdown_it.token import Token  # noqa: PLC0415 (as above)

    shown = "".join("\n" if each.type.endswith("break") else each.content for each in children)
    masked = mask_keys(shown)
    return children if masked == shown else [Token("text", "", 0, content=masked)]


_ABBREVIATED = 12
_LONGEST_COMMAND = 60


def render_entries(entries: list[dict[str, Any]], around: str = "") -> str:
    """Return the events; *around* has the numbers of the branches around them, each with a dot."""
    return "".join(_render_entry(entry, around) for entry in entries)


def _render_entry(entry: dict[str, Any], around: str) -> str:
    if entry["event"] is None:
        return tell_problem(f"what happened before cannot be read: {entry['problem']}")
    problem = tell_problem(entry["problem"]) if "problem" in entry else ""
    place = f'id="c-{entry["commit"]}"'
    if entry["event"] in STEPS:
        return f'<section class="step" {place}>\n{_render_step(entry)}{problem}</section>\n'
    if entry["event"] == "attempt":
        return f'<div class="attempt" {place}>\n{_render_attempt(entry)}{problem}</div>\n'
    branches = "".join(_render_branch(each, around) for each in entry.get("branches", ()))
    return f'<div class="event" {place}>\n{_render_event(entry)}{problem}</div>\n{branches}'


def _render_step(entry: dict[str, Any]) -> str:
    failed = entry.get("failedAttempts")
    is_answer = entry["event"] == "answer"
    told = [
        f"answered by {line(entry['by'])}" if is_answer and entry["by"] else "",
        f"after {count_attempts(failed)}" if failed else "",
        entry.get("try", ""),
        *_tell_work(entry),
    ]
    back = ' <span class="badge wait">taken back</span>' if entry.get("takenBack") else ""
    meta = entry.get("meta")
    return (
        f"<h3>{line(entry['title'])}{back}</h3>\n{facts(told)}"
        + (render_value(meta) if meta else "")
        + render_excerpt(entry.get("content"), top=4)
        + (f"<p>Note: </p>{render_excerpt(entry['note'])}" if entry.get("note") else "")
        + _fold_compared(entry.get("compared"))
        + _render_aside(entry)
        + _render_proof(entry)
    )


def _tell_work(entry: dict[str, Any]) -> list[str]:
    usage = entry.get("usage", {})
    tokens, cost = render_tokens(count_tokens(usage)), render_cost(find_cost(usage))
    began = entry.get("startedAt")
    return [
        code(_shorten(entry["agent"])) if is_played(entry) else "",
        render_time(began) if isinstance(began, int) else render_time(entry["time"]),
        render_ms(entry.get("durationMs")),
        f"{tokens} tokens" if tokens else "",
        f"{cost} USD" if cost else "",
        describe_files(entry.get("files")),
        *(f"{name} {line(str(entry[name]))}" for name in ("session", "rung") if entry.get(name)),
    ]


def _shorten(command: str) -> str:
    """Return the beginning of a command; its commit has the whole command."""
    first = command.split("\n", 1)[0][:_LONGEST_COMMAND]
    return first if first == command else f"{first}…"


def _fold_compared(compared: dict[str, Any] | None) -> str:
    if compared is None:
        return ""
    before = f'<a href="#c-{compared["commit"]}">step {compared["depth"]}</a>'
    differs = render_compared(compared)
    if not differs:
        return f'<p class="aside">It says the same as in {before}, the visit before.</p>\n'
    return folded("What differs from the visit before", f"<p>{before}</p>\n{differs}")


def render_compared(compared: dict[str, Any]) -> str:
    """Return what differs from the visit before; "" if nothing does."""
    meta, content = compared["meta"], compared["content"]
    changes = _render_changes(meta["value"]) if "value" in meta else render_excerpt(meta)
    hunks = ""
    if content is not None:
        hunks = difference(content["text"])
        if content["isCut"]:
            hunks += f'<p class="aside">The rest: {code(content["command"])}</p>\n'
    return changes + hunks


def _render_changes(changes: Any) -> str:
    if not isinstance(changes, list):
        return json_fields(changes)
    signs = {"added": "+", "removed": "-"}
    rows = []
    for change in changes:
        kind = change.get("kind")
        shown = {"added": ["after"], "removed": ["before"]}.get(kind, ["before", "after"])
        sides = [json_fields(change.get(side)) for side in shown]
        rows.append(
            f"<dt>{signs.get(kind, '~')} {line(str(change.get('path')) or 'meta')}</dt>"
            f"<dd>{' → '.join(sides)}</dd>\n"
        )
    return f"<dl>\n{''.join(rows)}</dl>\n" if rows else ""


def _render_aside(entry: dict[str, Any]) -> str:
    """Return what is folded below a step or an attempt: state, prompt, log."""
    parts = ""
    if entry.get("state"):
        parts += folded("What it changed in the state", render_value(entry["state"]))
    for name, title in (("prompt", "Prompt"), ("log", "Log")):
        excerpt = entry.get(name)
        if excerpt is not None:
            size = f" ({render_size(excerpt['bytes'])})" if "bytes" in excerpt else ""
            parts += folded(f"{title}{size}", render_excerpt(excerpt))
    return parts


def list_proofs(entry: dict[str, Any]) -> dict[str, str]:
    """Return the commands that show where an entry comes from, by what they show."""
    commands = {"what was recorded": f"git show {entry['commit']}"}
    if entry["event"] in {"step", "attempt"} and entry.get("prompt") is None:
        at = f"uwf thread context {entry['thread']} --at {entry['commit']} --prompt"
        commands["what the agent was given"] = at
    for what, name in (("its node", "node"), ("what its program reported", "trace")):
        if entry.get(name):
            commands[what] = f"json-cas get {entry[name]}"
    return commands


def _render_proof(entry: dict[str, Any]) -> str:
    """Return the commands that show where this comes from, folded."""
    commands = {what: code(command) for what, command in list_proofs(entry).items()}
    return folded(f"Commit {code(entry['commit'][:_ABBREVIATED])}", fields(commands))


def _render_attempt(entry: dict[str, Any]) -> str:
    error = entry.get("error") or {}
    message = f"{error.get('kind', 'error')}: {error.get('message', '')}"
    content = entry.get("content")
    printed = folded("What it printed", render_excerpt(content)) if content else ""
    ended = f"exit status {entry['exitCode']}" if "exitCode" in entry else ""
    told = facts([*_tell_work(entry), ended])
    inside = f"{told}{printed}{_render_aside(entry)}{_render_proof(entry)}"
    return folded(f'<strong class="bad">✗</strong> {line(entry["title"])}: {line(message)}', inside)


def _render_event(entry: dict[str, Any]) -> str:
    by = f", {line(entry['by'])}" if entry["by"] else ""
    note = render_excerpt(entry["note"]) if entry.get("note") else ""
    changes = json_fields(entry["changes"]) if entry.get("changes") else ""
    told = f"<strong>{line(entry['title'])}</strong>"
    time = f'<span class="soft">{render_time(entry["time"])}{by}</span>'
    return f"<p>{told} {time}</p>\n{changes}{note}"


def _render_branch(branch: dict[str, Any], around: str) -> str:
    number = f"{around}{branch['number']}"
    status = badge(branch["status"]) if branch.get("status") else ""
    problem = tell_problem(branch["problem"]) if "problem" in branch else ""
    inside = render_entries(branch.get("entries", []), f"{number}.")
    return (
        f'<section class="branch">\n<h3>Branch {number}: {line(branch["label"])} {status}</h3>\n'
        f"{facts([code(branch['thread'])])}{problem}{inside}</section>\n"
    )


_KIB = 1024
_LONGEST_AGENT = 100
_SIGNS = {
    "completed": ("good", "✓"),
    "failed": ("bad", "✗"),
    "killed": ("bad", "✗"),
    "waiting": ("wait", "?"),
    "paused": ("wait", "‖"),
    "split": ("soft", "⇉"),
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
    """Return the text of an excerpt, with *top* as Markdown, and git's command if cut."""
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
    return json_fields(excerpt["value"]) if "value" in excerpt else render_excerpt(excerpt)


def tell_problem(message: str) -> str:
    return f'<p class="problem"><strong class="bad">✗</strong> {escape_line(message)}</p>\n'


def _tell_cut(excerpt: dict[str, Any]) -> str:
    if not excerpt["isCut"]:
        return ""
    shown, whole = render_size(len(excerpt["text"].encode())), render_size(excerpt["bytes"])
    command = code(excerpt["command"])
    return f'<p class="aside">The first {shown} of {whole}; all of it: {command}</p>\n'


def render_size(count: int) -> str:
    return f"{count} bytes" if count < _KIB else f"{count / _KIB:.0f} KB"


def is_played(entry: dict[str, Any]) -> bool:
    """Check whether an agent or a person played the step or attempt; a join follows by itself."""
    return bool(entry.get("agent")) and entry["event"] != "join"


def render_command(command: str) -> str:
    """Return an agent's command; one of several lines, or a long one, below its program, folded."""
    if len(command) <= _LONGEST_AGENT and "\n" not in command:
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
    return render_duration(duration_ms) if isinstance(duration_ms, int) else ""
