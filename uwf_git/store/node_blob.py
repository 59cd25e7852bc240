"""Node blobs: a node as the bytes of a git blob.

Owns: the two forms, JSON and text. Knows nothing of: trees, where a blob is kept.
Always true: reading what was written gives the node back, byte for byte in a text; a node is
handed out only after its name was checked against its content.
Format: FORMAT.md, "Node files".
"""

import json
import re
from typing import Any

from uwf_git.errors import GIVEN_BACK, StoreDamaged
from uwf_git.model.builtin import BUILTIN, META, TEXT
from uwf_git.model.canonical import NotCanonical, canonical
from uwf_git.model.node import Node, build_node, content_hash
from uwf_git.model.node_hash import NodeHash, is_node_hash
from uwf_git.model.plain_schema import plain_check

JSON_SUFFIX = ".json"
TEXT_SUFFIX = ".md"

# Matched as bytes, never by a YAML parser or splitlines: FACTS 2 has the texts that break those.
_TEXT_HEADER = re.compile(
    rb"\A---\ntype: ([0-9A-F][0-9A-HJKMNP-TV-Z]{12})\ntimestamp: (0|[1-9][0-9]{0,15})\n---\n"
)
_FIELDS = {"type", "payload", "timestamp"}
_LATEST = 10**16
_SHAPED = {name: plain_check(node.payload) for name, node in BUILTIN.items() if name != META}


class DamagedNode(StoreDamaged):
    """A blob that should hold a node does not."""

    code = "damaged-node"

    def __init__(self, name: NodeHash, problem: str) -> None:
        super().__init__(
            f"node {name} {problem}",
            hint=GIVEN_BACK,
            node=name,
        )


def encode_node(node: Node) -> tuple[str, bytes]:
    """Write *node* as a blob.

    Returns:
        The suffix of its file name, and the bytes.
    """
    if node.type == TEXT and isinstance(node.payload, str):
        header = f"---\ntype: {node.type}\ntimestamp: {node.timestamp}\n---\n"
        return TEXT_SUFFIX, header.encode() + node.payload.encode()
    document = {"type": node.type, "payload": node.payload, "timestamp": node.timestamp}
    return JSON_SUFFIX, encode_json(document)


def decode_node(name: NodeHash, content: bytes) -> Node:
    """Read the blob that is kept under *name*, and check the name.

    Raises:
        DamagedNode: it is no node, or another one, or has not the parts that its type promises.
    """
    try:
        type_hash, written, timestamp = _parse(content)
        payload = canonical(written)
        actual = content_hash(type_hash, payload, name=name)
    except (ValueError, NotCanonical) as error:
        raise DamagedNode(name, f"cannot be read: {error}") from error
    if actual != name:
        raise DamagedNode(name, f"holds other content: its name would be {actual}")
    return check_node(Node(name, type_hash, payload, timestamp))


def check_node(node: Node) -> Node:
    """Give *node* if its payload has the parts that its type promises.

    Whoever can push can name any payload a StepNode; everything above relies on its parts.

    Raises:
        DamagedNode: it has not.
    """
    has_its_shape = _SHAPED.get(node.type)
    if has_its_shape is not None and not has_its_shape(node.payload):
        title = BUILTIN[node.type].payload["title"]
        raise DamagedNode(node.hash, f"says that it is a {title}, and is none")
    return node


def identify_node(content: bytes) -> Node:
    """Read a node blob that is kept without its name, and give it the one its content has.

    Raises:
        ValueError: it is no node.
    """
    type_hash, payload, timestamp = _parse(content)
    try:
        return check_node(build_node(type_hash, payload, timestamp=timestamp))
    except (DamagedNode, NotCanonical) as error:
        raise ValueError(str(error)) from error


def encode_json(document: Any) -> bytes:
    """Write a document as every JSON blob is written: UTF-8, two spaces, a final newline.

    Raises:
        ValueError: it holds what could not be read back, as NaN or a lone surrogate.
    """
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False).encode() + b"\n"


def decode_json(content: bytes) -> Any:
    """Read a JSON blob.

    Raises:
        ValueError: it is not JSON in UTF-8, or says NaN or Infinity, or is nested too deeply.
    """
    try:
        return json.loads(content.decode(), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _parse(content: bytes) -> tuple[NodeHash, Any, int]:
    header = _TEXT_HEADER.match(content)
    if header is not None:
        return NodeHash(header[1].decode()), content[header.end() :].decode(), int(header[2])
    document = decode_json(content)
    if not isinstance(document, dict) or document.keys() != _FIELDS:
        raise ValueError("it is not an object of type, payload and timestamp")
    type_hash, timestamp = document["type"], document["timestamp"]
    if not isinstance(type_hash, str) or not is_node_hash(type_hash):
        raise ValueError("its type is not a node hash")
    if type(timestamp) is not int or not 0 <= timestamp < _LATEST:
        raise ValueError("its timestamp is not a natural number of at most 16 digits")
    return NodeHash(type_hash), document["payload"], timestamp
