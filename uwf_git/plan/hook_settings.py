"""Put hooks into the text of a settings file, and take them out; all else stays.

The hooks that are ours are known by the script that they run.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from uwf_git.agents.reply import BadJson, parse_strict_json

SCRIPT = ("workflow", "hooks", "stop_hook")
"""The last parts of the path of our script."""

_OURS = re.compile(r"[\\/]+".join(SCRIPT) + r"\b")
_MARK = "\ufeff"
_INDENT = re.compile(r"^[{\[]\r?\n([ \t]+)")
_BLANKS = 2


class NotMergeable(ValueError):
    """The file holds something else than settings; the message says what."""


def add_hooks(text: str, settings: Mapping[str, Any]) -> str:
    """Return *text* with the hooks of *settings*: older ones of ours are replaced.

    An empty *text* is a file that is not there.

    Raises:
        NotMergeable: *text* is no JSON object with hooks in it.
    """
    before = _parse(text)
    document = _without_ours(before)
    hooks = document["hooks"] = dict(document.get("hooks", {}))
    for event, entries in settings["hooks"].items():
        hooks[event] = [*hooks.get(event, []), *entries]
    return text if document == before else _render(document, text)


def remove_hooks(text: str, others: Mapping[str, Any]) -> str:
    """Return *text* without our hooks; an empty text if nothing but *others* is left.

    Raises:
        NotMergeable: *text* is no JSON object with hooks in it.
    """
    before = _parse(text)
    after = _without_ours(before)
    if after == before:
        return text
    return "" if after in ({}, others) else _render(after, text)


def _parse(text: str) -> dict[str, Any]:
    plain = text.removeprefix(_MARK)
    if not plain.strip():
        return {}
    try:
        # Strict, since a key that is there twice would be lost.
        parse_strict_json(plain)
        document = json.loads(plain)
    except BadJson as error:
        raise NotMergeable(f"is {error.message}") from error
    if not isinstance(document, dict):
        raise NotMergeable("is no JSON object")
    hooks = document.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise NotMergeable("has hooks of another form")
    return document


def _without_ours(document: dict[str, Any]) -> dict[str, Any]:
    hooks = document.get("hooks", {})
    kept = {event: _foreign(entries) for event, entries in hooks.items()}
    kept = {event: entries for event, entries in kept.items() if entries or not hooks[event]}
    # Empty hooks stay if they were empty before.
    if kept or not hooks:
        return {**document, "hooks": kept} if "hooks" in document else dict(document)
    return {key: value for key, value in document.items() if key != "hooks"}


def _foreign(entries: list[Any]) -> list[Any]:
    kept = []
    for entry in entries:
        if _is_ours(entry):
            continue
        if isinstance(entry, dict) and isinstance(entry.get("hooks"), list) and entry["hooks"]:
            inner = [each for each in entry["hooks"] if not _is_ours(each)]
            if inner:
                kept.append({**entry, "hooks": inner})
            continue
        kept.append(entry)
    return kept


def _is_ours(entry: Any) -> bool:
    return isinstance(entry, dict) and any(
        isinstance(value, str) and _OURS.search(value) for value in entry.values()
    )


def _render(document: Mapping[str, Any], like: str) -> str:
    plain = like.removeprefix(_MARK)
    indent = _INDENT.match(plain)
    text = json.dumps(document, indent=indent[1] if indent else _BLANKS, ensure_ascii=False)
    if plain.endswith("\n") or not plain:
        text += "\n"
    if "\r\n" in plain:
        text = text.replace("\n", "\r\n")
    return (_MARK if like.startswith(_MARK) else "") + text
