"""The tree: immutable, and walked whole."""

from collections.abc import Iterator

import pytest

from uwf_git.engine.javascript.parser import Constant, Node, children, parse_expression


def _constants(node: Node) -> Iterator[object]:
    if isinstance(node, Constant):
        yield node.value
    for child in children(node):
        yield from _constants(child)


def test_children_reach_every_part() -> None:
    text = (
        "-1 + 2 * 3 && [4, `a${5}`] || (6 ? 7 : 8) || Array.isArray(9)"
        " || [10].map(x => 11 + x)[12]?.[13].b.join(14).trim()"
    )
    found = list(_constants(parse_expression(text).root))
    assert [each for each in found if isinstance(each, float)] == [*map(float, range(1, 15))]
    assert [each for each in found if isinstance(each, str)] == ["a", "", "b"]


def test_a_tree_cannot_be_changed() -> None:
    root = parse_expression("1 + x").root
    with pytest.raises(AttributeError):
        root.position = 3  # type: ignore[misc]  # what is tried
    assert hash(root) == hash(parse_expression("1 + x").root)
