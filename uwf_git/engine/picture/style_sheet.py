"""The colours and fonts of pictures, light and dark, as one style sheet."""

from collections.abc import Iterator

from uwf_git.engine.picture.drawing import ALL_STYLES, Style

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
