from typing import Any

import pytest
from cas_nodes import NOWHERE, add_misnamed, add_unchecked
from fresh_store import fresh_store

from uwf_git.commands.cas import find_title, find_type_name, summarize
from uwf_git.model.builtin import META, TEXT
from uwf_git.model.node import Node, build_node
from uwf_git.store.lookup.lookup import NodeLookup


def test_type_that_is_missing_or_damaged_has_no_name() -> None:
    store = fresh_store()
    lone = add_unchecked(store, NOWHERE, 1)
    lookup = NodeLookup(store)
    node = lookup.get(lone)
    assert find_type_name(lookup, node) is None

    add_misnamed(store, NOWHERE, META, {"title": "Wrong"})
    assert find_type_name(NodeLookup(store), node) is None


@pytest.mark.parametrize(
    ("payload", "title"),
    [
        ({"title": "A"}, "A"),
        ({"title": " two\nlines "}, "two lines"),
        ({"title": " "}, None),
        ({"title": 5}, None),
        ({}, None),
        (True, None),
    ],
)
def test_title_is_one_line_or_none(payload: Any, title: str | None) -> None:
    assert find_title(payload) == title


@pytest.mark.parametrize(
    ("payload", "summary"),
    [
        ("\n# Heading\n\ntext", "Heading"),
        ("", ""),
        ({"name": "Ada", "age": 3}, "Ada"),
        ({"title": "T", "name": "N"}, "T"),
        ({"name": "N", "role": "R"}, "N"),
        ({"name": 5, "role": "R"}, "R"),
        ({"name": "", "a": 1}, '{"name": "", "a": 1}'),
        ([1, None, "é"], '[1, null, "é"]'),
        (None, "null"),
        ("x" * 100, "x" * 71 + "…"),
        (
            list(range(100_000)),
            "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, …",
        ),
    ],
)
def test_summary_is_one_short_line(payload: Any, summary: str) -> None:
    node: Node = build_node(TEXT, payload, timestamp=0)

    assert summarize(node) == summary
    assert len(summary) <= 72
