"""The events of a thread in a report, in order, and their parts; branches stand at the split."""

import html
import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from uwf_git.agents.command_line import agent_name
from uwf_git.engine.masking import mask_keys
from uwf_git.engine.picture.draw import STYLE_SHEET
from uwf_git.model.event_folds import count_attempts, describe_files
from uwf_git.model.event_rules import STEPS
from uwf_git.model.limits import count_tokens, find_cost, write_usd
from uwf_git.model.text import (
    cut,
    one_line,
    render_duration,
    render_time,
    visible_block,
    visible_line,
)

# Elements of HTML that hold foreign text: escaped, with controls and direction marks spelled.

WIDE = '<div class="wide" role="group" aria-label="{}" tabindex="0">'
"""What scrolls by itself, with a name for who cannot see it."""

_LONGEST_LINE = 300
_MOST_ITEMS = 100


def escape(text: str) -> str:
    """Return *text* for the inside of an element; it has no place in an attribute."""
    return html.escape(text, quote=False)


def line(text: str) -> str:
    """Return *text* on one line, cut if it is long, apart from the direction of what is around."""
    return f"<bdi>{escape(cut(one_line(text), _LONGEST_LINE))}</bdi>"


def escape_line(text: str) -> str:
    return escape(one_line(text))


def code(text: str) -> str:
    return f"<code>{escape(visible_line(text))}</code>"


def preformatted(text: str) -> str:
    return f"<pre>{_first_line_kept(escape(visible_block(text)))}</pre>\n"


def _first_line_kept(escaped: str) -> str:
    # HTML drops a newline that follows <pre>.
    return f"\n{escaped}" if escaped.startswith("\n") else escaped


def difference(diff: str) -> str:
    """Return the hunks of a unified diff; a mark and a colour tell the lines apart."""
    kinds = {"+": "added", "-": "removed", "@": "hunk"}
    parts: list[str] = []
    for kind, group in groupby(diff.split("\n"), lambda each: kinds.get(each[:1], "")):
        lines = escape(visible_block("\n".join(group)))
        parts.append(f'<span class="{kind}">{lines}</span>' if kind else lines)
    return f'<pre class="diff">{_first_line_kept(chr(10).join(parts))}</pre>\n'


def fields(values: Mapping[str, str]) -> str:
    """Return a list of names (text) and values (HTML); those without a value are left out."""
    rows = "".join(
        f"<dt>{line(name)}</dt><dd>{each}</dd>\n" for name, each in values.items() if each
    )
    return f"<dl>\n{rows}</dl>\n" if rows else ""


def table(
    name: str, heads: Iterable[str], rows: Iterable[Iterable[str]], *, numbers: Container[int] = ()
) -> str:
    """Return a table of HTML cells that scrolls by itself; columns *numbers* are set right."""
    told = "".join(
        f'<th scope="col"{_side(n, numbers)}>{each}</th>' for n, each in enumerate(heads)
    )
    body = "".join(
        f"<tr>{''.join(f'<td{_side(n, numbers)}>{cell}</td>' for n, cell in enumerate(row))}</tr>\n"
        for row in rows
    )
    return (
        f"{WIDE.format(name)}<table>\n<thead><tr>{told}</tr></thead>\n"
        f"<tbody>\n{body}</tbody>\n</table></div>\n"
    )


def _side(column: int, numbers: Container[int]) -> str:
    return ' class="number"' if column in numbers else ""


def folded(summary: str, inside: str) -> str:
    """Return *inside* folded below *summary*; both are HTML."""
    return f"<details><summary>{summary}</summary>\n{inside}</details>\n"


def json_value(value: Any) -> str:
    if isinstance(value, str):
        if len(value) <= _LONGEST_LINE and re.search(r"[\r\n]", value) is None:
            return line(value)
        return f'<div class="text">{escape(visible_block(value))}</div>'
    if isinstance(value, dict) and value and all(_is_scalar(each) for each in value.values()):
        return fields({name: json_value(each) for name, each in value.items()})
    if isinstance(value, list) and value and all(_is_scalar(each) for each in value):
        items = "".join(f"<li>{json_value(each)}</li>\n" for each in value[:_MOST_ITEMS])
        more = len(value) - _MOST_ITEMS
        return f"<ul>\n{items}{f'<li>… and {more} more</li>' if more > 0 else ''}</ul>\n"
    if _is_scalar(value):
        return code(_json(value))
    return preformatted(_json(value, indent=2))


def json_fields(value: Any) -> str:
    if isinstance(value, dict) and value:
        return fields({name: json_value(each) for name, each in value.items()})
    return "" if value == {} else json_value(value)


def _json(value: Any, *, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except RecursionError:
        # With an indent json is written in Python, which does not go as deep.
        return json.dumps(value, ensure_ascii=False)


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list) or not value


# The colours and fonts of reports and of the pictures in them, light and dark.

_PAGE = """\
:root {
  color-scheme: light dark;
  --ground: #ffffff; --text: #1c2128; --soft: #57606a; --fill: #f6f8fa; --edge: #d0d7de;
  --link: #0969da; --good: #1a7f37; --bad: #cf222e; --wait: #9a6700;
  --added: #dafbe1; --removed: #ffebe9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0d1117; --text: #e6edf3; --soft: #9da7b3; --fill: #161b22; --edge: #3d444d;
    --link: #4493f8; --good: #3fb950; --bad: #f85149; --wait: #d29922;
    --added: #12361f; --removed: #4a1a1c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 68rem;
  background: var(--ground); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere;
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .75rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--edge); }
h3 { font-size: 1.1rem; margin: 0 0 .25rem; }
h4, h5, h6 { font-size: 1rem; margin: 1rem 0 .5rem; }
p, ul, ol, blockquote, dl, pre { margin: .5rem 0; }
ul, ol { padding-left: 1.5rem; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, .wide:focus-visible {
  outline: 2px solid var(--link); outline-offset: 2px;
}
hr { border: 0; border-top: 1px solid var(--edge); }
blockquote { margin-left: 0; padding-left: .8rem; border-left: 3px solid var(--edge);
  color: var(--soft); }
code, pre { font: .85em/1.45 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre { white-space: pre-wrap; padding: .7rem .8rem; border-radius: 6px; background: var(--fill);
  border: 1px solid var(--edge); }
pre code { font-size: 1em; }
dl { display: grid; gap: .25rem 1rem;
  grid-template-columns: minmax(5rem, max-content) minmax(0, 1fr); }
dt { color: var(--soft); max-width: 14rem; }
dd { margin: 0; min-width: 0; }
dd > details { margin: 0; }
dd > ul, dd > pre, dd > dl, dd > p:first-child { margin-top: 0; }
.text { white-space: pre-wrap; }
.text, .content :is(p, li, td, th, h3, h4, h5, h6) { unicode-bidi: plaintext; }
.facts, .aside { color: var(--soft); font-size: .9rem; }
.facts { display: flex; flex-wrap: wrap; gap: 0 1rem; list-style: none;
  margin: 0 0 .5rem; padding: 0; }
.badge { display: inline-block; padding: 0 .5rem;
  border: 1px solid currentColor; border-radius: 1rem;
  font-size: .85rem; font-weight: 600; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .wait { color: var(--wait); }
.soft { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; min-width: 100%; }
th, td { padding: .35rem .7rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--edge); }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
.wide > table { overflow-wrap: normal; }
.wide td { max-width: 24rem; }
.wide td.number, .wide th.number { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.wide tr:last-child td { border-bottom: 0; }
#steps td { white-space: nowrap; }
#steps tr:last-child td { border-top: 2px solid var(--edge); }
.step, .attempt, .event { margin: 1rem 0; }
.step { padding: .8rem 1rem; border: 1px solid var(--edge); border-radius: 8px; }
.attempt { padding: .3rem 1rem; border-left: 3px solid var(--bad); }
.event { padding: .1rem 1rem; border-left: 3px solid var(--edge); }
.event p { margin: .2rem 0; }
.problem { padding: .5rem .8rem; border: 1px solid var(--bad); border-radius: 6px; }
.branch { margin: 1rem 0 1rem .25rem; padding-left: 1rem; border-left: 3px solid var(--link); }
.content { margin: .75rem 0; padding: .1rem .8rem; border: 1px solid var(--edge);
  border-radius: 6px; }
.content > pre:only-child { border: 0; padding-left: 0; padding-right: 0; background: none; }
details { margin: .4rem 0; }
summary { cursor: pointer; }
.diff .added { background: var(--added); }
.diff .removed { background: var(--removed); }
.diff .hunk { color: var(--soft); }
@media (max-width: 40rem) {
  body { padding: 1rem .75rem 3rem; font-size: 15px; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: .5rem; }
  .step, .attempt, .event { padding-left: .7rem; padding-right: .7rem; }
}
@media print {
  .step, .problem { break-inside: avoid-page; }
}
"""

REPORT_SHEET = _PAGE + STYLE_SHEET


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
    setattr(parser, "validateLink", lambda address: _LINK.match(address.strip()) is not None)  # noqa: B010 (for types it is a method)
    return parser


def _render_fence(_renderer: object, tokens: "Sequence[Token]", at: int, *_args: object) -> str:
    """Return a block of code, below what stands behind the fence: mostly its language."""
    info = tokens[at].info.strip()
    label = f"<p><code>{escape(info)}</code></p>\n" if info else ""
    return f"{label}<pre><code>{escape(tokens[at].content)}</code></pre>\n"


def _lower_headings(tokens: "Sequence[Token]", top: int) -> None:
    headings = [token for token in tokens if token.type in {"heading_open", "heading_close"}]
    ranks = sorted({token.tag for token in headings})
    for token in headings:
        token.tag = f"h{min(top + ranks.index(token.tag), 6)}"


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
    shown = "".join("\n" if each.type.endswith("break") else each.content for each in children)
    masked = mask_keys(shown)
    return children if masked == shown else [type(children[0])("text", "", 0, content=masked)]


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
    began = entry.get("startedAt")
    return [
        code(_shorten(entry["agent"])) if is_played(entry) else "",
        render_time(began) if isinstance(began, int) else render_time(entry["time"]),
        render_ms(entry.get("durationMs")),
        *tell_spent(count_tokens(usage), find_cost(usage)),
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
    differs = _render_changes(meta["value"]) if "value" in meta else render_excerpt(meta)
    if content is not None:
        differs += difference(content["text"])
        if content["isCut"]:
            differs += f'<p class="aside">The rest: {code(content["command"])}</p>\n'
    return differs


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
    message = tell_error(entry.get("error") or {})
    content = entry.get("content")
    printed = folded("What it printed", render_excerpt(content)) if content else ""
    ended = f"exit status {entry['exitCode']}" if "exitCode" in entry else ""
    told = facts([*_tell_work(entry), ended])
    inside = f"{told}{printed}{_render_aside(entry)}{_render_proof(entry)}"
    return folded(f'<strong class="bad">✗</strong> {line(entry["title"])}: {line(message)}', inside)


def _render_event(entry: dict[str, Any]) -> str:
    by = f", {line(entry['by'])}" if entry["by"] else ""
    note = render_excerpt(entry["note"]) if entry.get("note") else ""
    changes = render_value(entry["changes"]) if entry.get("changes") else ""
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


def tell_error(error: dict[str, Any]) -> str:
    return f"{error.get('kind', 'error')}: {error.get('message', '')}"


def tell_problem(message: str) -> str:
    return f'<p class="problem"><strong class="bad">✗</strong> {escape_line(message)}</p>\n'


def _tell_cut(excerpt: dict[str, Any]) -> str:
    if not excerpt["isCut"]:
        return ""
    shown, whole = render_size(len(excerpt["text"].encode())), render_size(excerpt["bytes"])
    command = code(excerpt["command"])
    told = f"The first {shown} of {whole}; all of it"
    if excerpt.get("isLog"):
        told = f"The last {shown} of the {whole} that are kept; these"
    return f'<p class="aside">{told}: {command}</p>\n'


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
    return f"{cost:,.2f}" if cost >= 1 or not cost else write_usd(cost)


def tell_spent(tokens: int, cost: float | None) -> list[str]:
    """Return in words what agents reported; "" for what none did."""
    told = {"tokens": render_tokens(tokens), "USD": render_cost(cost)}
    return [f"{number} {unit}" if number else "" for unit, number in told.items()]


def render_ms(duration_ms: Any) -> str:
    return render_duration(duration_ms) if isinstance(duration_ms, int) else ""
