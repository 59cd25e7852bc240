"""Node blobs: a node as a git blob, in JSON or text form, reversible (FORMAT.md, "Node files")."""

import re
from typing import Any

from uwf_git.errors import GIVEN_BACK, StoreDamaged
from uwf_git.model.builtin import BUILTIN, META, TEXT
from uwf_git.model.canonical import NotCanonical, canonical
from uwf_git.model.frozen import FrozenDict
from uwf_git.model.names import NodeHash, is_node_hash
from uwf_git.model.node import Node, build_node, content_hash
from uwf_git.model.plain_schema import plain_check
from uwf_git.store.objects.byte_cache import ByteCache
from uwf_git.store.objects.json_file import decode_json, encode_json

JSON_SUFFIX = ".json"
TEXT_SUFFIX = ".md"

# Matched as bytes: FACTS 2 has texts that break YAML parsers and splitlines.
_TEXT_HEADER = re.compile(
    rb"\A---\ntype: ([0-9A-F][0-9A-HJKMNP-TV-Z]{12})\ntimestamp: (0|[1-9][0-9]{0,15})\n---\n"
)
_FIELDS = {"type", "payload", "timestamp"}
_LATEST = 10**16
_SHAPED = {name: plain_check(node.payload) for name, node in BUILTIN.items() if name != META}


class DamagedNode(StoreDamaged):
    code = "damaged-node"

    def __init__(self, name: NodeHash, problem: str) -> None:
        super().__init__(
            f"node {name} {problem}",
            hint=GIVEN_BACK,
            node=name,
        )


# Payloads that nobody can change, by their identities, with what they were encoded to.
_ENCODED: ByteCache[tuple[int, int], tuple[Node, tuple[str, bytes]]] = ByteCache(2**21)


def encode_node(node: Node) -> tuple[str, bytes]:
    known = BUILTIN.get(node.hash)
    is_builtin = known is not None and known.payload is node.payload
    if not (is_builtin or isinstance(node.payload, FrozenDict)):
        return _encode(node)
    # What is held keeps its identity; a name can be forged.
    key = (id(node.payload), node.timestamp)
    held = _ENCODED.get(key)
    if held is None or held[0].payload is not node.payload or held[0].type != node.type:
        held = node, _encode(node)
        _ENCODED.put(key, held, len(held[1][1]))
    return held[1]


def _encode(node: Node) -> tuple[str, bytes]:
    if node.type == TEXT and isinstance(node.payload, str):
        header = f"---\ntype: {node.type}\ntimestamp: {node.timestamp}\n---\n"
        return TEXT_SUFFIX, header.encode() + node.payload.encode()
    document = {"type": node.type, "payload": node.payload, "timestamp": node.timestamp}
    return JSON_SUFFIX, encode_json(document)


def decode_node(name: NodeHash, content: bytes) -> Node:
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
    """Return *node* if its payload has the fields of its built-in type.

    A push can call any payload a StepNode, and the readers of StepNodes rely on the fields.
    """
    has_its_shape = _SHAPED.get(node.type)
    if has_its_shape is not None and not has_its_shape(node.payload):
        title = BUILTIN[node.type].payload["title"]
        raise DamagedNode(node.hash, f"says that it is a {title}, and is not")
    return node


def identify_node(content: bytes) -> Node:
    """Read a node blob without knowing its name; compute the name from the content."""
    type_hash, payload, timestamp = _parse(content)
    try:
        return check_node(build_node(type_hash, payload, timestamp=timestamp))
    except (DamagedNode, NotCanonical) as error:
        raise ValueError(str(error)) from error


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
