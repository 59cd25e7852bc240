"""Elements of HTML that hold foreign text: escaped, with controls and direction marks spelled."""

import json
import re
from collections.abc import Container, Iterable, Mapping
from itertools import groupby
from typing import Any

from uwf_git.engine.picture.draw import STYLE_SHEET
from uwf_git.model.text import cut, one_line, visible_block, visible_line

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
WIDE = '<div class="wide" role="group" aria-label="{}" tabindex="0">'
"""What scrolls by itself, with a name for who cannot see it."""

_LONGEST_LINE = 300
_MOST_ITEMS = 100


def escape(text: str) -> str:
    """Return *text* for the inside of an element; it has no place in an attribute."""
    return text.translate(_ESCAPED)


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
        return line(value) if _is_short(value) else f'<div class="text">{_block(value)}</div>'
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


def _block(text: str) -> str:
    return escape(visible_block(text))


def _json(value: Any, *, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except RecursionError:
        # With an indent json is written in Python, which does not go as deep.
        return json.dumps(value, ensure_ascii=False)


def _is_short(text: str) -> bool:
    return len(text) <= _LONGEST_LINE and re.search(r"[\r\n]", text) is None


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
