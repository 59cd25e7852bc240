"""A laid out picture as SVG, light and dark."""

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from uwf_git.engine.picture.labels import (
    ALL_STYLES,
    Box,
    Drawing,
    Line,
    Point,
    Style,
    Text,
    is_sure,
)

# The colours and fonts of pictures, light and dark, as one style sheet.

_FACES = {
    "bold": 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
    "mono": 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace',
}
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
_STATES = ("done", "now", "waits", "failed", "paused", "stopped")


def _face(style: Style) -> str:
    weight = "600 " if style.face == "bold" else ""
    family = _FACES["mono" if style.face == "mono" else "bold"]
    return f".uwf-picture .{style.name} {{ font: {weight}{style.size}px {family}; }}\n"


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
    for kind, colour in (
        ("loop", "loop"),
        ("parallel", "fork"),
        ("map", "fork"),
        ("conditional", "choice"),
    ):
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
    faces = "".join(map(_face, ALL_STYLES))
    return f"{faces}{shapes}{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


STYLE_SHEET = _sheet()
"""The colours and fonts of all pictures, for a page that shows them."""


# A drawing as SVG: colours are classes, light and dark, and nothing has a style of its own.
#
# A page with a strict policy shows it as it is, with ``STYLE_SHEET`` among its own; only a file
# that stands alone has the sheet in it.

_CORNER = 6


def render_svg(drawing: Drawing, *, stands_alone: bool = True) -> str:
    """Return *drawing* as an SVG element; a whole file, with its colours, if it *stands alone*."""
    size = f'width="{drawing.width}" height="{drawing.height}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="uwf-picture" role="img" {size} '
        f'viewBox="0 0 {drawing.width} {drawing.height}">'
    )
    parts = [
        head,
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
    radius = min(box.radius, box.height // 2)
    return (
        f'<rect class="{box.kind}" x="{box.x}" y="{box.y}" width="{box.width}" '
        f'height="{box.height}" rx="{radius}"/>'
    )


def _line(line: Line) -> Iterator[str]:
    path = "".join(map(_path, line.parts))
    yield f'<path class="{line.kind}" d="{path}"/>'
    if line.has_arrow:
        (x0, y0), (x, y) = line.parts[-1][-2:]
        across, down = _sign(x - x0), _sign(y - y0)
        back_x, back_y = x - 9 * across, y - 9 * down
        side_x, side_y = 5 * abs(down), 5 * abs(across)
        yield (
            f'<path class="head {line.kind}" d="M{x} {y}L{back_x - side_x} {back_y - side_y}'
            f'L{back_x + side_x} {back_y + side_y}Z"/>'
        )


def _path(points: tuple[Point, ...]) -> str:
    x, y = points[0]
    told = f"M{x} {y}"
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        near, far = _towards(at, before), _towards(at, after)
        told += f"L{near[0]} {near[1]}Q{at[0]} {at[1]} {far[0]} {far[1]}"
    x, y = points[-1]
    return f"{told}L{x} {y}"


def _towards(corner: Point, other: Point) -> Point:
    across, down = other[0] - corner[0], other[1] - corner[1]
    by = min(_CORNER, (abs(across) + abs(down)) // 2)
    return corner[0] + _sign(across) * by, corner[1] + _sign(down) * by


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _text(text: Text) -> str:
    classes = " ".join(filter(None, (text.style.name, text.kind)))
    middle = ' text-anchor="middle"' if text.anchor == "middle" else ""
    # A script or sign that fonts draw as wide as they like is set as wide as was guessed.
    length = (
        "" if is_sure(text.text) else f' textLength="{text.width}" lengthAdjust="spacingAndGlyphs"'
    )
    whole = f"<title>{escape(text.whole)}</title>" if text.whole else ""
    return (
        f'<text class={quoteattr(classes)} x="{text.x}" y="{text.y}"{middle}{length}>'
        f"{whole}{escape(text.text)}</text>"
    )
