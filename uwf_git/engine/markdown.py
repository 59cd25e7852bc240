"""A thread as a Markdown document.

Text of an agent cannot break out of its place: its headings are lowered, and text that could reach
beyond its own lines (HTML, link definitions, fences that only a list would close) is shown as code.
Source: CommonMark 0.31, https://spec.commonmark.org/0.31.2/
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_LINE_ENDS = re.compile(r"\r\n|\r")
_HEADING = re.compile(r"^ {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-+)[ \t]*$")
# Fences at the margin belong to no list and no quote, so every reader of Markdown agrees on where
# they end; a fence of backticks has no backtick after it.
_FENCE = re.compile(r"^(`{3,}(?=[^`]*$)|~{3,})")
_CLOSING_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*$")
_INDENTED_FENCE = re.compile(r"^[ \t]+(?:`{3}|~{3})", re.MULTILINE)
_LINK_DEFINITION = re.compile(r"^[ \t>*+\-0-9.)]*\[[^\]\n]+\]:", re.MULTILINE)
_TAG = re.compile(r"<(?:[!?]|/[A-Za-z]|[A-Za-z][A-Za-z0-9-]*(?=[\s/>]|$))", re.MULTILINE)
_CODE_SPAN = re.compile(r"(?<![\\`])(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_BEGINS_A_BLOCK = re.compile(r"\s*(?:[#>~=|]|(?:[-*_]+|\+|\d+[.)])(?:\s|$)|[-*_]{3})|[^`].*\]:")
# What Markdown (struck text: that of GitHub) takes out of data, or lays out in its own way.
_MARK = re.compile(
    r"`|<(?:[!?/A-Za-z]|[^\s<>]+@)|\\[\n!-/:-@\[-`{-~]|&#?\w+;|\]\(|(?:^|\s)#+$|\n[ \t#>+]"
)
_BEGIN_AND_END = [
    (re.compile(rf"{before}[{mark}][^\s{mark}]"), re.compile(rf"[^\s{mark}][{mark}]{after}"))
    for before, mark, after in (("", "*", ""), ("", "~", ""), (r"(?<!\w)_*", "_", r"_*(?!\w)"))
]
_MOST_ITEMS = 20

# Finding code spans can take quadratic time in the length of a text.
_LONGEST_SEARCHED = 64 * 1024


class ThreadEntry(NamedTuple):
    title: str

    facts: tuple[str, ...] = ()
    """Small print below it, as Markdown (``inline_text`` converts any text)."""

    meta: Any = None
    text: str = ""


def render_document(
    title: str,
    facts: Sequence[str],
    task: str,
    entries: Iterable[ThreadEntry],
    *,
    has_lists: bool = False,
) -> Iterator[str]:
    """Write a thread as Markdown, entry by entry; *has_lists* is for objects in meta."""
    yield _paragraphs(f"# {inline_text(title)}", _small_print(facts), _quote(task))
    for entry in entries:
        yield "\n" + _paragraphs(
            f"## {inline_text(entry.title)}",
            _small_print(entry.facts),
            _meta(entry.meta, has_lists=has_lists),
            place_text(entry.text),
        )


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def place_text(text: str) -> str:
    """Return *text* confined to its place: headings lowered, or as code if that is not enough."""
    text = _normalised(text)
    outside = "\n".join(line for line, before, _ in _with_fences(text) if not before)
    if _has_tag(outside) or _INDENTED_FENCE.search(outside) or _LINK_DEFINITION.search(outside):
        return fence_text(text)
    return lower_headings(text)


def lower_headings(text: str) -> str:
    """Return *text* with its headings two levels lower, leaving fenced code alone.

    An open fence is closed, or it would swallow what follows; a line that would turn the line
    before it into a heading is separated.
    """
    lines: list[str] = []
    for line, before, fence in _with_fences(_normalised(text)):
        if not (before or fence):
            if _UNDERLINE.match(line) and lines and lines[-1].strip():
                lines.append("")
            if heading := _HEADING.match(line):
                # Markdown has six levels.
                lines.append("#" * min(len(heading[1]) + 2, 6) + line[heading.end() :])
                continue
        lines.append(line)
    if fence:
        lines.append(fence)
    return "\n".join(lines).strip("\n")


def fence_text(text: str) -> str:
    """Return *text* as a block of code, whatever fences it has itself."""
    text = _normalised(text)
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{text}\n{fence}"


def inline_text(text: str) -> str:
    """Return *text*, which is data, on one line; as code if Markdown reads a mark in it."""
    line = " ".join(text.split())
    return _code_span(line) if _has_mark(line) else line


def _has_mark(text: str) -> bool:
    return _MARK.search(text) is not None or any(
        (begun := begin.search(text)) and end.search(text, begun.end() - 1)
        for begin, end in _BEGIN_AND_END
    )


def _normalised(text: str) -> str:
    return _LINE_ENDS.sub("\n", text).strip("\n")


def _with_fences(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield each line, with the fence that is open before it and after it, "" for none."""
    fence = ""
    for line in text.split("\n"):
        before = fence
        if not before:
            mark = _FENCE.match(line)
            fence = mark[1] if mark else ""
        elif (mark := _CLOSING_FENCE.match(line)) and mark[1].startswith(before):
            fence = ""
        yield line, before, fence


def _has_tag(text: str) -> bool:
    """Check whether *text* has HTML that is not certainly within a code span."""
    if _TAG.search(text) is None:
        return False
    if len(text) > _LONGEST_SEARCHED:
        return True
    bare = _CODE_SPAN.sub("", text)
    # A mark that is left over may open a span that ends lines later.
    return _TAG.search(text if "`" in bare else bare) is not None


def _code_span(line: str) -> str:
    marks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{marks}{pad}{line}{pad}{marks}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def _meta(meta: Any, *, has_lists: bool) -> str:
    if meta is None or meta == {}:
        return ""
    if not isinstance(meta, dict):
        return f"```json\n{json.dumps(meta, ensure_ascii=False, indent=2)}\n```"
    return "\n".join(
        line for name, value in meta.items() for line in _field(name, value, has_lists=has_lists)
    )


def _field(name: str, value: Any, *, has_lists: bool) -> list[str]:
    """Return the lines of a member; with *has_lists* objects in it are lists, deeper as JSON."""
    label = f"- **{inline_text(name)}**:"
    if value in ([], {}, "", None):
        return [f"{label} none"]
    if has_lists and isinstance(value, dict):
        inner = (f"  - **{inline_text(key)}**: {_inline(each)}" for key, each in value.items())
        return [label, *inner]
    if isinstance(value, list):
        are_objects = has_lists and all(isinstance(each, dict) and each for each in value)
        if are_objects or all(map(_is_short, value)):
            write = _fields if are_objects else _item
            left_out = len(value) - _MOST_ITEMS
            more = [f"  - … and {left_out} more"] if left_out > 0 else []
            return [label, *(f"  - {write(each)}" for each in value[:_MOST_ITEMS]), *more]
    if isinstance(value, str) and not _is_short(value):
        told = _quote(fence_text(value) if _has_mark(f"\n{value}") else value)
        return [label, *(f"  {line}".rstrip() for line in told.split("\n"))]
    return [f"{label} {_inline(value)}"]


def _fields(fields: dict[str, Any]) -> str:
    return " · ".join(f"**{inline_text(name)}** {_inline(each)}" for name, each in fields.items())


def _item(value: Any) -> str:
    text = _inline(value)
    return _code_span(text) if _BEGINS_A_BLOCK.match(text) else text


def _inline(value: Any) -> str:
    if isinstance(value, str):
        return inline_text(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if _is_short(value) else _code_span(text)


def _is_short(value: Any) -> bool:
    return not isinstance(value, dict | list) and not re.search(r"[\r\n]", str(value))


def _small_print(facts: Sequence[str]) -> str:
    return " · ".join(fact for fact in facts if fact)


def _quote(text: str) -> str:
    # Indented by blanks: after a mark a tab is narrower, and may end a fence.
    untabbed = _INDENT.sub(lambda indent: indent[0].expandtabs(4), place_text(text))
    return "\n".join(f"> {line}".rstrip() for line in untabbed.split("\n"))
