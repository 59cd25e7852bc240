"""Ask the routes without a server."""

import json
from collections.abc import Callable
from typing import Any

from uwf_git.web.ui.answers import Asked, Created, Picture, write_json
from uwf_git.web.ui.application import ROUTES
from uwf_git.web.ui.site import Site

Ask = Callable[..., Any]


def ask_route(site: Site, method: str, path: str, body: Any = None, **query: str) -> Any:
    """Return the answer of a route, as it is sent: ``ask_route(site, "GET", "/api/threads")``."""
    words = path.split("/")
    # One whose words are all its own comes before one with a name for any word.
    for route in sorted(ROUTES, key=lambda each: each.path.count("{")):
        parts = route.path.split("/")
        pairs = [*zip(parts, words, strict=False)]
        fits = all(part == word or part.startswith("{") for part, word in pairs)
        if route.method == method and len(parts) == len(words) and fits:
            params = {part[1:-1]: word for part, word in pairs if part.startswith("{")}
            answer = route.answer(site, Asked(params, query, body or {}))
            if isinstance(answer, Picture):
                return answer.svg
            document = answer.document if isinstance(answer, Created) else answer
            return json.loads(write_json(document, site.mask))
    raise AssertionError(path)
