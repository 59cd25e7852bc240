"""The long form of test_node.py: expressions by chance against node."""

import pytest
from conftest import Draws
from engine.javascript.node import PROGRAM, Node
from engine.javascript.test_node import compare, compare_filled


@pytest.mark.skipif(PROGRAM is None, reason="there is no node")
def test_every_answer_is_nodes(draws: Draws) -> None:
    with Node() as node:
        for _ in draws.rounds(300):
            compare(node, draws.chance)
            compare_filled(node, draws.chance)
