import random

import pytest
from flow_trees import as_flow, order
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.flow import NotAPosition, Part, Position, fits, parse_position

parts = st.builds(
    Part, st.booleans(), st.integers(0, 10**6), st.one_of(st.none(), st.integers(0, 10**14))
)
positions = st.lists(parts, min_size=1, max_size=32).map(lambda each: Position(tuple(each)))


@given(positions)
def test_a_position_is_read_as_it_is_written(position: Position) -> None:
    assert parse_position(str(position)) == position


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0/",
        "/0",
        "00",
        "0.",
        "e",
        "0.1.2",
        "٣",
        "0\n",
        "0" + "/0" * 32,
        "9" * 16,
    ],
)
def test_what_is_no_position(text: str) -> None:
    with pytest.raises(NotAPosition):
        parse_position(text)


def test_positions_grow_and_a_container_comes_after_all_inside_it() -> None:
    texts = [
        "0.1/0",
        "0.1/1.1/0",
        "0.1/1.2/0",
        "0.1/1.10/0",
        "0.1/1",
        "0.1/2/0",
        "0.1/2/e0",
        "0.1/2",
        "0.2/0",
        "0.9/10",
        "0.10/2",
        "0",
        "1",
    ]
    read = [parse_position(text) for text in texts]
    found = random.Random(1).sample(read, len(read))
    assert sorted(found, key=order) == read


AGENT = {"type": "agent", "agentId": "a"}
FLOW = as_flow(
    {
        "type": "loop",
        "maxIterations": 3,
        "nodes": [
            {"type": "parallel", "nodes": [AGENT, {"type": "loop", "nodes": [AGENT]}]},
            {"type": "map", "over": "x", "nodes": [AGENT, AGENT]},
            {"type": "sequential", "nodes": [AGENT]},
        ],
    }
)


def test_where_a_thread_may_stand() -> None:
    for position, entry, told in [
        ("0", None, True),
        ("0.2/0", None, True),
        ("0.2/2/0", None, True),
        ("0/0", None, False),  # a loop without a pass
        ("0.0/0", None, False),
        ("0.2/2.1/0", None, False),  # no loop, and a pass
        ("0.2/0/0", None, False),  # within a branch
        ("0.2/1.0/0", None, False),
        ("0.2/5", None, False),
        ("0.2/0.1", None, False),
        ("0.2/0/0", "0.2/0/0", True),
        ("0.2/0/1.4/0", "0.2/0/1", True),
        ("0.2/0/1", "0.2/0/1", True),
        ("0.2/0/0", "0.2/0/1", False),
        ("0.3/0/0", "0.2/0/0", False),
        ("0.2/1.0/1", "0.2/1.0", True),
        ("0.2/1.1/1", "0.2/1.0", False),
        ("0.2/1.0", "0.2/1.0", False),
        ("0.2/0", "0.2/0/0", False),
    ]:
        begun = None if entry is None else parse_position(entry)
        assert fits(FLOW, parse_position(position), entry=begun) is told
