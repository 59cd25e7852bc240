"""Chains that lead back into themselves, with really forged names."""

import struct
from typing import Any

import pytest
import xxhash
from refusing import refuses
from store.story import Story
from store.test_damage import grown

from uwf_git.model.builtin import STEP, reference
from uwf_git.model.names import NodeHash, encode_u64
from uwf_git.model.node import Node, build_node, encode
from uwf_git.store.threads.history import StepChain

# XXH64's primes, from its specification.
_P1, _P2, _P3, _P4 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63
_ALL = 2**64 - 1


def forged(payload: dict[str, Any], number: int) -> Node:
    """Make a step of *payload* whose name is *number*, by a last field of the right value.

    Each part of XXH64's end can be run backwards: from the number to the last eight bytes. They
    are a ``durationMs``, which comes last, and every fourth double is an integer of some size.
    """
    for salt in range(10_000, 100_000):
        value, salted = _forged_value({**payload, "meta": {"salt": salt}}, number)
        if value >= 2**53 and value.is_integer():
            node = build_node(STEP, {**salted, "durationMs": value}, timestamp=0)
            assert node.hash == encode_u64(number)
            return node
    raise AssertionError("no salt gave an integer")


def _forged_value(payload: dict[str, Any], number: int) -> tuple[float, dict[str, Any]]:
    meta = payload["meta"]
    while (13 + len(encode({**payload, "durationMs": 0.5})) - 8) % 32:
        payload = {**payload, "meta": {**meta, "pad": payload["meta"].get("pad", "") + "z"}}
    content = STEP.encode() + encode({**payload, "durationMs": 0.5})
    before = _unmixed(xxhash.xxh64_intdigest(content[:-8])) + 8
    mixed = _turned((_unmixed(number) - _P4) * _inverse(_P1), 64 - 27) ^ (before & _ALL)
    last = _turned(mixed * _inverse(_P1), 64 - 31) * _inverse(_P2) & _ALL
    (value,) = struct.unpack(">d", struct.pack("<Q", last))
    return value, payload


def _unmixed(digest: int) -> int:
    """Undo XXH64's last steps."""
    digest ^= digest >> 32
    digest = digest * _inverse(_P3) & _ALL
    digest ^= (digest >> 29) ^ (digest >> 58)
    digest = digest * _inverse(_P2) & _ALL
    return digest ^ (digest >> 33)


def _inverse(odd: int) -> int:
    return pow(odd, -1, 2**64)


def _turned(value: int, left: int) -> int:
    value &= _ALL
    return (value << left | value >> (64 - left)) & _ALL


def step(story: Story, prev: NodeHash) -> dict[str, Any]:
    start = reference(story.snapshot.record.node)
    fields = {"content": start, "agent": start, "prev": reference(prev)}
    return {"role": "writer", "meta": {}, **fields}


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_chain_that_leads_back_into_itself_ends_as_damage(story: Story, length: int) -> None:
    """A pusher can forge 64 bits; reading such a thread must not take for ever."""
    number = 0x1234_5678_9ABC_DEF0
    chain = [NodeHash(encode_u64(number))]
    nodes = []
    for _other in range(length - 1):
        nodes.append(build_node(STEP, step(story, chain[-1]), timestamp=0))
        chain.append(nodes[-1].hash)
    nodes.append(forged(step(story, chain[-1]), number))

    snapshot = grown(story, *reversed(nodes), depth=100)
    seen: list[NodeHash] = []
    with refuses("damaged-commit", match=snapshot.commit.oid):
        seen.extend(node.hash for node in snapshot.walk_chain())
    assert sorted(seen) == sorted(node.hash for node in nodes)

    with refuses("damaged-commit", match=snapshot.commit.oid):
        StepChain(snapshot).get(0)
