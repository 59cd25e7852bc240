import json
from pathlib import Path
from typing import Any

import pytest

from uwf_git.model import builtin
from uwf_git.model.builtin import (
    BUILTIN,
    BUILTIN_NODES,
    META,
    META_NODE,
)
from uwf_git.model.node import Node
from uwf_git.model.schema_check import check_schema, check_value

# Existing threads refer to these names: a schema that changes gets another name, and the old one
# must stay.
NAMES = {
    "META": "607F3QK6JGWCT",
    "TEXT": "7T9THEK9TEVCY",
    "BYTES": "A8HWRT5ANPHEK",
    "ROLE": "394TF908N1YXY",
    "MODERATOR": "BCEDV3J2NEDZV",
    "WORKFLOW": "CW88EZYEDTXG5",
    "AGENT_CONFIG": "3XEJQ361TS7WF",
    "START": "AZS68F65RFR68",
    "STEP": "AVJGDY8EZNJHJ",
    "ATTEMPT": "3QJHZ0TBHJ5VG",
    "TRACE": "A7DPBAHX8CK19",
    "SIGNAL": "4SFSX2E9TQJ9B",
    "AGENT_EXEC_CONTEXT": "09XJBB8N39DVK",
    "FLOW": "6KJSXTD1NR6YV",
}

FULL: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "made_up" / "payloads.json").read_text()
)
"""A payload of each schema with every field; each reference is to another node."""
NEEDED = {
    "ROLE": "name description",
    "MODERATOR": "graph",
    "WORKFLOW": "name description roles",
    "AGENT_CONFIG": "command",
    "START": "workflow prompt agentBinding",
    "STEP": "role meta content agent prev",
    "ATTEMPT": "role agent attempt error",
    "TRACE": "events",
    "SIGNAL": "action",
    "AGENT_EXEC_CONTEXT": "env",
    "FLOW": "nodes",
}


def schema(name: str) -> Any:
    return BUILTIN[getattr(builtin, name)].payload


def test_a_built_in_schema_keeps_its_name() -> None:
    for name, hash_ in NAMES.items():
        assert getattr(builtin, name) == hash_


def test_the_table_has_all_of_them_and_the_meta_schema_is_first() -> None:
    assert list(BUILTIN) == list(NAMES.values())
    assert BUILTIN_NODES[0] is META_NODE


def test_the_meta_schema_is_true_of_itself_and_of_every_other() -> None:
    assert META_NODE.is_self_typed
    for node in BUILTIN_NODES:
        assert node.type == META
        assert check_value(META_NODE.payload, node.payload) == []


@pytest.mark.parametrize("node", BUILTIN_NODES, ids=lambda node: str(node.payload["title"]))
def test_a_built_in_schema_is_a_json_schema_written_at_no_time(node: Node) -> None:
    assert check_schema(node.payload) == []
    assert node.timestamp == 0


@pytest.mark.parametrize("name", FULL)
def test_each_field_that_is_needed_is_missed(name: str) -> None:
    for field in NEEDED[name].split():
        payload = {key: value for key, value in FULL[name].items() if key != field}
        assert check_value(schema(name), payload) != []


@pytest.mark.parametrize("name", FULL)
def test_unknown_field_is_refused(name: str) -> None:
    assert check_value(schema(name), {**FULL[name], "unknown": 1}) != []
