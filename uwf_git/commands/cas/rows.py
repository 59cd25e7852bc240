"""Rows: a node in one line; a missing or damaged node is a row that says so."""

import json
from typing import Any, NamedTuple

from uwf_git.errors import StoreDamaged
from uwf_git.model.event_words import first_line
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.store.lookup.lookup import NodeLookup, NoSuchNode

_LONGEST = 72
# The fields that name most nodes, the first present one counts.
_NAMES = ("title", "name", "role", "command", "prompt")


class NodeRow(NamedTuple):
    """One node in a list."""

    hash: NodeHash
    type: NodeHash | None
    """None if the node cannot be read."""

    type_name: str | None
    """The title of its schema; None if it has none, or cannot be read."""

    summary: str
    """One line of the payload; "" if the node cannot be read."""

    problem: str | None = None
    """Why the node cannot be read; None if it can."""


def build_row(lookup: NodeLookup, name: NodeHash) -> tuple[NodeRow, Node | None]:
    """Return the row of the node *name*, and the node if it can be read."""
    try:
        node = lookup.find(name)
    except StoreDamaged as error:
        return NodeRow(name, None, None, "", error.message), None
    if node is None:
        return NodeRow(name, None, None, "", NoSuchNode(name).message), None
    return NodeRow(name, node.type, find_type_name(lookup, node), summarize(node)), node


def find_title(payload: Any) -> str | None:
    """Return the title of a schema in one line; None if it has none."""
    title = payload.get("title") if isinstance(payload, dict) else None
    return " ".join(title.split()) or None if isinstance(title, str) else None


def find_type_name(lookup: NodeLookup, node: Node) -> str | None:
    """Return the title of the schema of *node*; None if it has none, or cannot be read."""
    try:
        return find_title(lookup.get_type(node.type).payload)
    except (NoSuchNode, StoreDamaged):
        return None


def summarize(node: Node) -> str:
    """Return one short line of the payload of *node*."""
    return _short(_words(node.payload))


def _words(payload: Any) -> str:
    if isinstance(payload, str):
        return first_line(payload)
    if isinstance(payload, dict):
        for key in _NAMES:
            value = payload.get(key)
            if isinstance(value, str) and first_line(value):
                return first_line(value)
    # Stop after one line: a large payload need not be rendered whole.
    parts = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).iterencode(payload)
    text = ""
    for part in parts:
        text += part
        if len(text) > _LONGEST:
            break
    return text


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
