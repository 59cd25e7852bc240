"""What a report may be made of; all else is somebody's attack, or a slip."""

import re
from html.parser import HTMLParser

_PLAIN = (
    "html head title style body header nav main section h1 h2 h3 h4 h5 h6 p ul ol li dl dt dd "
    "table thead tbody tr th td div span bdi code pre strong em s blockquote hr br details summary "
    "a meta svg desc rect path text"
)
_ATTRIBUTES = {
    "html": "lang",
    "meta": "charset name content http-equiv",
    "a": "href rel",
    "ol": "start",
    "th": "scope class",
    "td": "class",
    "div": "class id role aria-label tabindex",
    "section": "class id",
    "nav": "aria-label",
    "svg": "xmlns class role width height viewbox",
    "rect": "class x y width height rx",
    "path": "class d",
    "text": "class x y text-anchor textlength lengthadjust",
}
ELEMENTS = frozenset(_PLAIN.split())
HOSTILE_SIGNS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def find_foreign(element: str, attributes: dict[str, str]) -> list[str]:
    """Return what an element may not be or have; names in lower case."""
    found = [] if element in ELEMENTS else [f"<{element}>"]
    known = {*_ATTRIBUTES.get(element, "").split(), "class"}
    found += [f"<{element} {name}>" for name in attributes if name not in known]
    href = attributes.get("href", "#")
    if not re.match(r"#|https?:|mailto:", href):
        found.append(f"<a href={href}>")
    return found


class Parsed(HTMLParser):
    """A report as a parser of HTML sees it."""

    def __init__(self, report: str) -> None:
        super().__init__()
        self.foreign: list[str] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.feed(report)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.foreign += find_foreign(tag, attributes)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if attributes.get("href", "").startswith("#"):
            self.targets.append(attributes["href"][1:])

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.foreign.append(f"<!--{data}-->")

    def handle_pi(self, data: str) -> None:
        self.foreign.append(f"<?{data}>")

    @property
    def text(self) -> str:
        """All that is shown."""
        return "".join(self.texts)


def harmless(report: str) -> Parsed:
    """Parse a report, which has nothing foreign and no sign that deceives."""
    seen = Parsed(report)
    assert seen.foreign == []
    assert HOSTILE_SIGNS.search(seen.text) is None
    return seen
