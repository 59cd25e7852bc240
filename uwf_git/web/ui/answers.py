"""What a route returns, and how it is written: JSON whose texts are spelled out.

Controls and marks of direction in foreign text must not reach the page as they are. What has to
stay exact, since it is sent back or is a schema, is wrapped in ``Exact``.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from uwf_git.commands.inspect.excerpt import Mask, mask_json
from uwf_git.errors import BadUsage
from uwf_git.model.text import visible_block, visible_line

_STATUS = {1: 422, 2: 400, 3: 422, 4: 409}
_MISSING = frozenset(
    {"no-such-thread", "not-a-thread-id", "no-such-workflow", "workflow-removed", "no-such-entry",
     "no-draft-thread", "no-such-route"}
)  # fmt: skip
_STATUS_OF = {"too-busy": 503, "no-such-method": 405, "bad-body": 400, "system-error": 500}


class Exact(NamedTuple):
    value: Any


class Html(str):
    """HTML that `web` made: its texts are masked and spelled already."""

    __slots__ = ()


class Created(NamedTuple):
    document: dict[str, Any]


class Picture(NamedTuple):
    svg: str


class Asked(NamedTuple):
    params: Mapping[str, str]
    query: Mapping[str, str]
    body: dict[str, Any]


class Told(Protocol):
    """How the command line would tell an error."""

    @property
    def code(self) -> str:
        """As of an error."""

    @property
    def message(self) -> str:
        """As of an error."""

    @property
    def hint(self) -> str | None:
        """As of an error."""

    @property
    def exit_status(self) -> int:
        """As of an error."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """As of an error."""


Describe = Callable[[BaseException], Told]


def bad_body(name: str, problem: str) -> BadUsage:
    return BadUsage(
        f"{name or 'the body'}: {problem}",
        code="bad-body",
        hint="this is a fault of the page: load it again",
        details=[{"pointer": f"/{name}" if name else "", "message": problem}],
    )


def take_text(body: Mapping[str, Any], name: str, *, needed: bool = False) -> str:
    value = body.get(name)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        raise bad_body(name, "a text is needed")
    return value


def check_names(body: Mapping[str, Any], *known: str) -> None:
    for name in body.keys() - set(known):
        raise bad_body(name, "there is no such field")


def tell_error(told: Told, mask: Mask) -> tuple[int, dict[str, Any]]:
    status = _STATUS.get(told.exit_status, 500)
    if told.code in _MISSING:
        status = 404
    error = {"code": told.code, "message": told.message, "hint": told.hint}
    details = told.facts.get("details")
    if details:
        error["details"] = details
    return _STATUS_OF.get(told.code, status), {"error": mask_json(error, mask)}


def write_json(value: Any, mask: Mask | None = None) -> bytes:
    """Return *value* as JSON: its texts spelled out, and masked by *mask* unless they are HTML."""
    text = json.dumps(_spell(value, mask), ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")


def _spell(value: Any, mask: Mask | None) -> Any:
    if isinstance(value, Exact):
        return value.value
    if isinstance(value, Html):
        return str(value)
    if isinstance(value, str):
        return visible_block(value if mask is None else mask(value))
    if isinstance(value, Mapping):
        return {visible_line(str(name)): _spell(each, mask) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_spell(each, mask) for each in value]
    return value
