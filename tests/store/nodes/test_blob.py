import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from store.story import AGENT, CLOSURE, WORKFLOW

from uwf_git.model.builtin import BUILTIN_NODES, META, STEP, TEXT
from uwf_git.model.names import NodeHash
from uwf_git.model.node import MAX_NESTING, Node, build_node
from uwf_git.store.nodes import DamagedNode, decode_node, encode_node, identify_node
from uwf_git.store.objects.commit import encode_json

ANY = build_node(META, {}, timestamp=0)
HELLO = build_node(TEXT, "hello\n", timestamp=7)
texts = st.text(st.characters(exclude_categories=["Cs"]))
payloads = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=10,
)  # fmt: skip
timestamps = st.integers(0, 10**16 - 1)


def read_back(node: Node) -> Node:
    return decode_node(node.hash, encode_node(node)[1])


@given(text=texts, timestamp=timestamps)
@example(text="", timestamp=0)
@example(text="\ufeffbom", timestamp=0)
@example(text=f"---\ntype: {TEXT}\ntimestamp: 0\n---\n", timestamp=0)
@example(text="\x0b\x0c\x1c\x85\u2028\u2029", timestamp=0)
def test_every_text_comes_back_as_it_was(text: str, timestamp: int) -> None:
    node = build_node(TEXT, text, timestamp=timestamp)
    suffix, content = encode_node(node)
    assert suffix == ".md"
    assert content.endswith(text.encode())
    assert decode_node(node.hash, content) == identify_node(content) == node


@given(payload=payloads, timestamp=timestamps)
def test_every_payload_comes_back_as_it_was(payload: Any, timestamp: int) -> None:
    node = build_node(ANY.hash, payload, timestamp=timestamp)
    suffix, content = encode_node(node)
    assert suffix == ".json"
    back = decode_node(node.hash, content)
    assert back == identify_node(content) == node
    assert repr(back.payload) == repr(node.payload)


@pytest.mark.parametrize("node", [*BUILTIN_NODES, *CLOSURE, WORKFLOW, AGENT], ids=lambda n: n.hash)
def test_the_nodes_of_a_workflow_come_back_as_they_were(node: Node) -> None:
    assert read_back(node) == node


def test_the_deepest_payload_comes_back() -> None:
    payload: Any = "bottom"
    for level in range(MAX_NESTING):
        payload = [payload] if level % 2 else {"a": payload}
    node = build_node(ANY.hash, payload, timestamp=0)
    assert read_back(node) == node


def document(**fields: Any) -> bytes:
    return json.dumps({"type": ANY.hash, "payload": 1, "timestamp": 0, **fields}).encode()


NAME = build_node(ANY.hash, 1, timestamp=0).hash


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"[" * 100_000, "nested too deeply"),
        (b"1" * 5000, "cannot be read"),
        (b"NaN", "NaN is not JSON"),
        (document(payload=float("inf")), "Infinity is not JSON"),
        (document(payload="\ud800"), "lone surrogate"),
        (document(payload=10**400), "no 64-bit float can hold"),
        (document(type=None), "its type is not a node hash"),
        (document(timestamp=-1), "its timestamp is not a natural number"),
        (document(timestamp=10**16), "its timestamp is not a natural number"),
        (document(timestamp=True), "its timestamp is not a natural number"),
        (document(more=1), "not an object of type, payload and timestamp"),
        (document(payload=2), "holds other content: its name would be "),
        (f"---\ntype: {TEXT}\ntimestamp: 0\n---\nhello".encode(), "holds other content"),
        (f"---\ntype: {TEXT}\ntimestamp: 00\n---\nhello".encode(), "cannot be read"),
        (f"---\ntype: {TEXT}\ntimestamp: 0\n---\n".encode() + b"\xff", "cannot be read"),
    ],
)
def test_blob_that_is_not_the_node_is_reported_with_its_name(content: bytes, words: str) -> None:
    with pytest.raises(DamagedNode) as caught:
        decode_node(NAME, content)
    assert NAME in caught.value.message
    assert words in caught.value.message
    assert caught.value.exit_status == 5


@pytest.mark.parametrize("payload", [None, [], {}, {"role": "writer"}])
def test_a_node_without_the_parts_that_its_type_promises_is_damaged(payload: Any) -> None:
    node = build_node(STEP, payload, timestamp=0)
    content = encode_node(node)[1]
    with pytest.raises(DamagedNode, match="says that it is a StepNode, and is not"):
        decode_node(node.hash, content)
    with pytest.raises(ValueError, match="says that it is a StepNode, and is not"):
        identify_node(content)


@given(content=st.binary() | texts.map(str.encode) | payloads.map(encode_json))
def test_whatever_a_blob_holds_it_is_damage_and_nothing_else(content: bytes) -> None:
    with pytest.raises(DamagedNode):
        decode_node(NodeHash("0000000000000"), content)
    with pytest.raises(ValueError):  # noqa: PT011 - there are many ways to be no node
        identify_node(content)


@given(position=st.integers(0), change=st.integers(1, 255))
def test_no_byte_of_a_node_changes_unnoticed(position: int, change: int) -> None:
    """But those that say when: the time is not part of the name."""
    content = bytearray(encode_node(HELLO)[1])
    position %= len(content)
    content[position] ^= change
    try:
        assert decode_node(HELLO.hash, bytes(content))._replace(timestamp=7) == HELLO
    except DamagedNode:
        return


def test_a_name_in_another_blobs_place_is_noticed() -> None:
    with pytest.raises(DamagedNode, match=HELLO.hash):
        decode_node(ANY.hash, encode_node(HELLO)[1])
