"""`json-cas cat`: a payload alone."""

import binascii
from base64 import b64decode
from typing import Any, NamedTuple

from uwf_git.commands.cas_get import get_node
from uwf_git.model.builtin import BYTES, TEXT
from uwf_git.model.node import Node
from uwf_git.store.store import Store


class Content(NamedTuple):
    """What a node holds."""

    payload: Any
    raw: bytes | None
    """The bytes that a Text or a Bytes node stands for; None of any other node."""


def cat_node(store: Store, text: str) -> Content:
    """Give what the node holds whose name is, or begins with, *text*.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: it means none, or several.
        StoreDamaged: it is there, but no ref has it whole.
    """
    node = get_node(store, text).node
    return Content(node.payload, _raw(node))


def _raw(node: Node) -> bytes | None:
    if not isinstance(node.payload, str):
        return None
    if node.type == TEXT:
        return node.payload.encode()
    if node.type == BYTES:
        try:
            return b64decode(node.payload, validate=True)
        except (binascii.Error, ValueError):
            # The schema says base64, but validators do not decode.
            return None
    return None
