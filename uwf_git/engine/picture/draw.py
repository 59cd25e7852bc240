"""From what is to be drawn to the text of a picture, in one of three forms."""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from uwf_git.engine.picture.labels import (
    ALL_STYLES,
    Box,
    Drawing,
    Line,
    Point,
    Text,
    columns,
    cut,
    is_sure,
    wrap,
)
from uwf_git.engine.picture.layout import lay_out_flow, lay_out_graph
from uwf_git.engine.picture.plan import (
    Block,
    Branch,
    FlowPlan,
    GraphPlan,
    Mark,
    MarkState,
    Plan,
    Station,
    Subject,
    plan_flow,
    plan_graph,
)
from uwf_git.model.flow import Flow

# A plan as plain text: an outline with the ways written beside it, of any width.

_LEAST = 30
_SERIAL = ("├─ ", "└─ ", "│  ")
_BESIDE = ("╠═ ", "╚═ ", "║  ")
"""How branches that run beside each other begin, the last of them, and what goes on below."""


def render_outline(plan: Plan, width: int) -> str:
    """Return *plan* as text of at most *width* columns, but at least 30 for what is deep inside."""
    width = max(width, _LEAST)
    lines = [*wrap(plan.title, width), *(wrap(plan.about, width) if plan.about else ()), ""]
    lines += _graph(plan, width) if isinstance(plan, GraphPlan) else _flow(plan, width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _graph(plan: GraphPlan, width: int) -> Iterator[str]:
    for number, station in enumerate(plan.stations):
        note = station.note if station.is_reached else f"(nothing leads here) {station.note}"
        yield from _head("", "", station._replace(note=note), width)
        ways = [way for way in plan.ways if way.source == number]
        goes_down = any(way.target == number + 1 for way in ways)
        told: list[str] = []
        for way in ways:
            sign = "↺" if way.target <= number else "↓" if way.target == number + 1 else "→"
            there = f"{sign} {plan.stations[way.target].name}"
            told += [f"{label}  {there}" for label in way.labels]
            # The only way is not told if it leads to the next station.
            if not way.labels and sign != "↓":
                told.append(there)
        for left, line in enumerate(sorted(told, key=_number), 1 - len(told)):
            mark, guide = ("├─ ", "│  ") if left or goes_down else ("└─ ", "   ")
            first, *others = wrap(line, width - 3, "   ")
            yield mark + first
            yield from (guide + each for each in others)
        if number + 1 < len(plan.stations):
            yield "│" if goes_down else ""


def _number(line: str) -> int:
    number = line.partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _flow(plan: FlowPlan, width: int) -> Iterator[str]:
    start, end = plan.marks
    yield from _head("", "", Station("start", "", start), width)
    for block in plan.blocks:
        yield from _block(block, _SERIAL[0], _SERIAL[2], width)
    yield from _head("", "", Station("end", "", end), width)


def _block(block: Block, first: str, guide: str, width: int) -> Iterator[str]:
    """Yield the lines of *block*: the first begins with *first*, the others with *guide*."""
    if not block.branches:
        yield from _head(first, guide, block, width)
        return
    yield from _head(first, guide, block._replace(note=""), width)
    room = max(width - len(guide) - 3, _LEAST)
    for line in wrap(block.note, room) if block.note else ():
        yield f"{guide}│  {line}"
    signs = _BESIDE if block.kind == "parallel" else _SERIAL
    branches = [branch for branch in block.branches if branch.blocks]
    if block.kind != "conditional":
        blocks = [inner for branch in branches for inner in branch.blocks]
        yield from _blocks(blocks, guide, signs, width)
        return
    for branch in branches:
        is_last = branch is branches[-1]
        yield f"{guide}{signs[is_last]}{branch.label}"
        below = guide + ("   " if is_last else signs[2])
        yield from _blocks(branch.blocks, below, signs, width)


def _blocks(
    blocks: Sequence[Block], guide: str, signs: tuple[str, str, str], width: int
) -> Iterator[str]:
    for number, block in enumerate(blocks):
        is_last = number == len(blocks) - 1
        below = guide + ("   " if is_last else signs[2])
        yield from _block(block, guide + signs[is_last], below, width)


def _head(first: str, guide: str, what: Station | Block, width: int) -> Iterator[str]:
    """Yield the name of *what* with its mark, wrapped, and its note in what remains of the line."""
    name, mark, note = what.name, what.mark, what.note
    room = max(width - len(guide), _LEAST)
    line, *others = wrap(name if mark is None else f"{name}  [{mark.badge}]", room, "  ")
    if mark is not None and not others and columns(line) < room:
        # `wrap` knows no two blanks.
        line = f"{name}  [{mark.badge}]"
    left = room - columns(line) - 2
    if note and not others and left >= _LEAST // 2:
        line += f"  {cut(note, left, columns)}"
    yield first + line
    yield from (guide + each for each in others)


# The colours of pictures.

_LIGHT = {
    "ground": "#ffffff", "text": "#1c2128", "soft": "#57606a", "line": "#818b98",
    "fill": "#f6f8fa", "edge": "#d0d7de", "end": "#1f2328", "on-end": "#ffffff",
    "loop": "#8250df", "fork": "#0969da", "choice": "#9a6700", "on-badge": "#ffffff",
    "done": "#1a7f37", "now": "#0969da", "waits": "#9a6700", "failed": "#cf222e",
    "paused": "#57606a", "stopped": "#cf222e",
}  # fmt: skip
_DARK = {
    "ground": "#0d1117", "text": "#e6edf3", "soft": "#9da7b3", "line": "#7d8590",
    "fill": "#161b22", "edge": "#3d444d", "end": "#e6edf3", "on-end": "#0d1117",
    "loop": "#a371f7", "fork": "#4493f8", "choice": "#d29922", "on-badge": "#0d1117",
    "done": "#3fb950", "now": "#4493f8", "waits": "#d29922", "failed": "#f85149",
    "paused": "#9da7b3", "stopped": "#f85149",
}  # fmt: skip
_STATES: tuple[MarkState, ...] = ("done", "now", "waits", "failed", "paused", "stopped")


# A plan in Mermaid, which GitHub and GitLab draw in Markdown.

_MERMAID_COLUMNS = 40

_SHAPES = {
    "role": ("[", "]"),
    "end": ("([", "])"),
    "workflow": ("[[", "]]"),
    "choice": ("{", "}"),
    "fork": ("((", "))"),
}

_CLASSES: dict[str, str] = {state: f"stroke:{_LIGHT[state]},stroke-width:2px" for state in _STATES}
_CLASSES["unreached"] = "stroke-dasharray:4 3,opacity:0.55"

# All else has a meaning in Mermaid, Markdown or HTML, or may have one in its next release.
_SPECIAL = re.compile(r"[^\w ,.:?!/()=…✓✗▶→“”·‖\u0080-\U0010ffff-]|_")


_Exits: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Nodes from which a way leads on, each with the label of that way."""


class _Part(NamedTuple):
    """A node or a frame."""

    lines: tuple[str, ...]
    entry: str
    exits: _Exits


class _Mermaid:
    """One text; each name in it is one word of ASCII letters and digits."""

    def __init__(self) -> None:
        self._count = 0
        self._edges: list[str] = []
        self._classes: dict[str, list[str]] = {}

    def render(self, plan: Plan) -> str:
        parts = self._graph(plan) if isinstance(plan, GraphPlan) else self._flow(plan)
        lines = [line for part in parts for line in part.lines] + self._edges
        for name, style in _CLASSES.items():
            if name in self._classes:
                lines.append(f"classDef {name} {style}")
                lines.append(f"class {','.join(self._classes[name])} {name}")
        indented = "".join(f"  {line}\n" for line in lines)
        return f"flowchart TD\n  %% {plan.title}\n{indented}"

    def _graph(self, plan: GraphPlan) -> list[_Part]:
        parts = []
        for number, station in enumerate(plan.stations):
            shape = "end" if station.is_end else "role"
            parts.append(self._node(shape, station.name, station.mark, name=f"n{number}"))
            if not station.is_reached:
                self._classes.setdefault("unreached", []).append(f"n{number}")
        for way in plan.ways:
            label = tuple(line for each in way.labels for line in wrap(each, _MERMAID_COLUMNS))
            is_back = way.target <= way.source
            self._connect(((f"n{way.source}", label),), f"n{way.target}", is_back=is_back)
        return parts

    def _flow(self, plan: FlowPlan) -> list[_Part]:
        ends = zip(("start", "end"), plan.marks, strict=True)
        start, end = [self._node("end", name, mark) for name, mark in ends]
        return self._chain([start, *map(self._part, plan.blocks), end])

    def _part(self, block: Block) -> _Part:
        if not block.branches:
            shape = "workflow" if block.kind == "workflow" else "role"
            return self._node(shape, block.name, block.mark)
        name = self._name("g")
        if block.kind == "parallel":
            return self._parallel(name, block)
        if block.kind == "conditional":
            return self._conditional(name, block)
        parts = self._branch(block.branches[0])
        if block.kind == "loop":
            self._connect(parts[-1].exits, parts[0].entry, is_back=True)
        return self._frame(name, block, parts, parts[0].entry, parts[-1].exits)

    def _parallel(self, name: str, block: Block) -> _Part:
        fork, join = self._node("fork", ""), self._node("fork", "")
        parts = [fork, join]
        for branch in block.branches:
            inner = self._branch(branch)
            self._connect(fork.exits, inner[0].entry)
            self._connect(inner[-1].exits, join.entry)
            parts += inner
        return self._frame(name, block, parts, fork.entry, join.exits)

    def _conditional(self, name: str, block: Block) -> _Part:
        choice = self._node("choice", block.note)
        parts = [choice]
        exits: _Exits = ()
        for branch in block.branches:
            way = ((choice.entry, (branch.label,)),)
            inner = self._branch(branch)
            if inner:
                self._connect(way, inner[0].entry)
            parts += inner
            exits += inner[-1].exits if inner else way
        return self._frame(name, block._replace(note=""), parts, choice.entry, exits)

    def _branch(self, branch: Branch) -> list[_Part]:
        return self._chain([self._part(each) for each in branch.blocks])

    def _chain(self, parts: list[_Part]) -> list[_Part]:
        for before, after in itertools.pairwise(parts):
            self._connect(before.exits, after.entry)
        return parts

    def _name(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _node(self, shape: str, text: str, mark: Mark | None = None, *, name: str = "") -> _Part:
        name = name or self._name("n")
        opening, closing = _SHAPES[shape]
        line = f"{name}{opening}{self._quote_marked(name, text, mark)}{closing}"
        return _Part((line,), name, ((name, ()),))

    def _frame(
        self, name: str, block: Block, parts: list[_Part], entry: str, exits: _Exits
    ) -> _Part:
        title = self._quote_marked(name, block.name, block.mark, block.note)
        inner = (f"  {line}" for part in parts for line in part.lines)
        return _Part((f"subgraph {name}[{title}]", *inner, "end"), entry, exits)

    def _quote_marked(self, name: str, text: str, mark: Mark | None, note: str = "") -> str:
        lines = wrap(text, _MERMAID_COLUMNS)
        if mark is not None:
            lines.append(mark.badge)
            self._classes.setdefault(mark.state, []).append(name)
        return _quote([*lines, *(wrap(note, _MERMAID_COLUMNS) if note else ())])

    def _connect(self, exits: _Exits, target: str, *, is_back: bool = False) -> None:
        for source, label in exits:
            arrow = "-.->" if is_back else "-->"
            told = f"|{_quote(label)}|" if label else ""
            self._edges.append(f"{source} {arrow}{told} {target}")


def _quote(lines: Sequence[str]) -> str:
    told = "<br/>".join(_SPECIAL.sub(lambda match: f"#{ord(match[0])};", line) for line in lines)
    return f'"{told or " "}"'


# A laid out picture as SVG, light and dark.

_SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
_FACES = {
    "bold": f"600 {{}}px {_SANS}",
    "plain": f"{{}}px {_SANS}",
    "mono": '{}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace',
}


def _colours(of: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield selectors with their colours."""
    yield ".ground", f"fill: {of['ground']}"
    yield "text", f"fill: {of['text']}"
    yield ".note, .uwf-picture .label", f"fill: {of['soft']}"
    yield "rect", f"stroke: {of['edge']}"
    yield ".role, .uwf-picture .agent, .uwf-picture .workflow", f"fill: {of['fill']}"
    yield "text.role, .uwf-picture text.agent, .uwf-picture text.workflow", f"fill: {of['text']}"
    yield "text.note", f"fill: {of['soft']}"
    yield "rect.end", f"fill: {of['end']}; stroke: {of['end']}"
    yield "text.end", f"fill: {of['on-end']}"
    yield ".bar", f"fill: {of['line']}; stroke: none"
    yield ".way", f"stroke: {of['line']}"
    yield ".head", f"fill: {of['line']}; stroke: none"
    yield ".back", f"stroke: {of['loop']}"
    yield ".head.back", f"fill: {of['loop']}; stroke: none"
    colours = {"loop": "loop", "parallel": "fork", "map": "fork", "conditional": "choice"}
    for kind, colour in colours.items():
        yield f"rect.{kind}", f"stroke: {of[colour]}"
        yield f"text.{kind}", f"fill: {of[colour]}"
    yield "rect.map", f"fill: {of['ground']}"
    yield "text.sequential", f"fill: {of['soft']}"
    for state in _STATES:
        yield f"rect.is-{state}", f"stroke: {of[state]}"
        yield f"rect.badge.is-{state}", f"fill: {of[state]}; stroke: none"
        yield f"rect.end.is-{state}", f"fill: {of[state]}"
    yield "text.badge", f"fill: {of['on-badge']}"


def _sheet() -> str:
    shapes = (
        ".uwf-picture rect { fill: none; }\n"
        ".uwf-picture path { fill: none; stroke-width: 1.5; }\n"
        ".uwf-picture .ground { stroke: none; }\n"
        ".uwf-picture .back { stroke-dasharray: 5 4; }\n"
        ".uwf-picture .sequential { stroke-dasharray: 2 3; }\n"
        ".uwf-picture .unreached { stroke-dasharray: 4 3; opacity: 0.55; }\n"
        ".uwf-picture [class*=is-] { stroke-width: 2; }\n"
    )
    light = "".join(f".uwf-picture {where} {{ {what}; }}\n" for where, what in _colours(_LIGHT))
    dark = "".join(f".uwf-picture {where} {{ {what}; }}\n" for where, what in _colours(_DARK))
    faces = "".join(
        f".uwf-picture .{style.name} {{ font: {_FACES[style.face].format(style.size)}; }}\n"
        for style in ALL_STYLES
    )
    return f"{faces}{shapes}{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


STYLE_SHEET = _sheet()
"""The colours and fonts of all pictures, for a page that shows them."""


# A drawing as SVG: colours are classes, light and dark, and nothing has a style of its own.
#
# A page with a strict policy shows it as it is, with ``STYLE_SHEET`` among its own; only a file
# that stands alone has the sheet in it.


def render_svg(drawing: Drawing, *, stands_alone: bool = True) -> str:
    """Return *drawing* as an SVG element; a whole file, with its colours, if it *stands alone*."""
    size = f'width="{drawing.width}" height="{drawing.height}"'
    view = f'viewBox="0 0 {drawing.width} {drawing.height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="uwf-picture" role="img" {size} {view}>',
        f"<title>{escape(drawing.title)}</title>",
        f"<desc>{escape(drawing.about)}</desc>",
    ]
    if stands_alone:
        parts.append(f"<style>\n{STYLE_SHEET}</style>")
    parts.append(f'<rect class="ground" {size}/>')
    parts += map(_box, drawing.boxes)
    for line in drawing.lines:
        parts += _line(line)
    parts += map(_text, drawing.texts)
    for box, text in drawing.badges:
        parts += (_box(box), _text(text))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(box: Box) -> str:
    x, y, width, height, kind, _key, radius = box
    place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    return f'<rect class="{kind}" {place} rx="{min(radius, height // 2)}"/>'


def _line(line: Line) -> Iterator[str]:
    path = "".join(map(_path, line.parts))
    yield f'<path class="{line.kind}" d="{path}"/>'
    if line.has_arrow:
        (x0, y0), (x, y) = line.parts[-1][-2:]
        across, down = _sign(x - x0), _sign(y - y0)
        back_x, back_y = x - 9 * across, y - 9 * down
        side_x, side_y = 5 * abs(down), 5 * abs(across)
        sides = f"L{back_x - side_x} {back_y - side_y}L{back_x + side_x} {back_y + side_y}"
        yield f'<path class="head {line.kind}" d="M{x} {y}{sides}Z"/>'


def _path(points: tuple[Point, ...]) -> str:
    told = "M{} {}".format(*points[0])
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        near, far = _towards(at, before), _towards(at, after)
        told += f"L{near[0]} {near[1]}Q{at[0]} {at[1]} {far[0]} {far[1]}"
    return "{}L{} {}".format(told, *points[-1])


def _towards(corner: Point, other: Point) -> Point:
    across, down = other[0] - corner[0], other[1] - corner[1]
    by = min(6, (abs(across) + abs(down)) // 2)
    return corner[0] + _sign(across) * by, corner[1] + _sign(down) * by


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _text(text: Text) -> str:
    classes = " ".join(filter(None, (text.style.name, text.kind)))
    middle = ' text-anchor="middle"' if text.anchor == "middle" else ""
    # A script or sign that fonts draw as wide as they like is set as wide as was guessed.
    length = f' textLength="{text.width}" lengthAdjust="spacingAndGlyphs"'
    how = middle if is_sure(text.text) else middle + length
    whole = f"<title>{escape(text.whole)}</title>" if text.whole else ""
    start = f'<text class={quoteattr(classes)} x="{text.x}" y="{text.y}"{how}>'
    return f"{start}{whole}{escape(text.text)}</text>"


DEFAULT_WIDTH = 80
FORMS = ("text", "svg", "mermaid")


def make_plan(subject: Subject, *, is_whole: bool = False) -> Plan:
    """Return what the picture of *subject* shows; if it *is whole*, no branches are folded."""
    if isinstance(subject.moves, Flow):
        return plan_flow(subject, subject.moves, is_whole=is_whole)
    return plan_graph(subject, subject.moves)


def lay_out(plan: Plan) -> Drawing:
    return lay_out_graph(plan) if isinstance(plan, GraphPlan) else lay_out_flow(plan)


def draw(subject: Subject, form: str, *, width: int = DEFAULT_WIDTH, is_whole: bool = False) -> str:
    """Return the picture of *subject* in a *form* of ``FORMS``; *width* is for text, in columns."""
    plan = make_plan(subject, is_whole=is_whole)
    if form == "text":
        return render_outline(plan, width)
    return render_svg(lay_out(plan)) if form == "svg" else _Mermaid().render(plan)
