"""Find the sections and tables of FORMAT.md for tests."""

import re
from pathlib import Path

import uwf_git

PACKAGE = Path(uwf_git.__file__).parent
PAGE = (PACKAGE / "store" / "FORMAT.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return the text of the section *title*, up to the next title of any level."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, f"FORMAT.md has no section {title!r}"
    return found[1]


def table(title: str) -> list[list[str]]:
    """Return the rows of the first table of a section, without backquotes and without its head."""
    rows = [line.strip("|").split("|") for line in section(title).splitlines() if line[:1] == "|"]
    return [[cell.strip().strip("`") for cell in row] for row in rows[2:]]
