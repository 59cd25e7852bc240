"""A drawing as SVG: colours are classes, light and dark, and nothing has a style of its own.

A page with a strict policy shows it as it is, with ``STYLE_SHEET`` among its own; only a file that
stands alone has the sheet in it.
"""

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from uwf_git.engine.picture.drawing import Box, Drawing, Line, Point, Text
from uwf_git.engine.picture.style_sheet import STYLE_SHEET
from uwf_git.engine.picture.text_size import is_sure

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
    """Return the path through *points*, with round corners."""
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
