"""Make the relative links and pictures of a page absolute: to a tag of a hosted repository.

    python docs/absolute_links.py README.md https://HOST/OWNER/NAME v1.2.3

A package index shows the README without the files beside it. The release workflow calls this
before it builds; the page in the repository keeps its relative links.
"""

import re
import sys
from pathlib import Path

_LINK = re.compile(r"(?P<mark>\]\(|(?:src|srcset|href)=\")(?P<target>[^)\"#:]+)(?P<rest>[)\"#])")
_PICTURES = (".png", ".svg")


def absolute_links(page: str, repository: str, tag: str) -> str:
    """Return *page* with each link to a file beside it leading to *repository* at *tag*."""

    def lead(found: re.Match[str]) -> str:
        target = found["target"]
        kind = "raw" if target.endswith(_PICTURES) else "blob"
        return f"{found['mark']}{repository}/{kind}/{tag}/{target}{found['rest']}"

    return _LINK.sub(lead, page)


if __name__ == "__main__":
    path, repository, tag = sys.argv[1:]
    page = Path(path)
    page.write_text(absolute_links(page.read_text(encoding="utf-8"), repository, tag), "utf-8")
