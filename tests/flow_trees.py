"""Random flows, and a naive interpreter of them: it recurses, and remembers nothing but the way."""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from uwf_git.model.flow import STOPS, Flow, FlowNode, Position, parse_flow, parse_position

Tree = dict[str, Any]

AGENT: Tree = {"type": "agent", "agentId": "a"}

_agents = st.just(AGENT)
_leaves = st.one_of(
    _agents,
    _agents,
    st.just({"type": "workflow", "use": "w", "workflow": {"$ref": "CW88EZYEDTXG5"}}),
)


def _containers(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    lists = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("sequential"), "nodes": lists}),
        st.fixed_dictionaries({"type": st.just("parallel"), "nodes": lists}),
        st.fixed_dictionaries({"type": st.just("map"), "over": st.just("x"), "nodes": lists}),
        st.fixed_dictionaries(
            {"type": st.just("loop"), "nodes": lists},
            optional={
                "condition": st.just("x"),
                "maxIterations": st.sampled_from([1, 2, 3, "${x}"]),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("loop"), "over": st.just("x"), "nodes": lists},
            optional={"condition": st.just("x")},
        ),
        st.fixed_dictionaries(
            {"type": st.just("conditional"), "condition": st.just("x"), "nodes": lists},
            optional={"else": lists},
        ),
    )


trees = st.recursive(_leaves, _containers, max_leaves=12)


def flatten(tree: Tree, place: str = "0") -> dict[str, Any]:
    """Return the table of *tree*."""
    table = {place: {key: value for key, value in tree.items() if key not in ("nodes", "else")}}
    for key, mark in (("nodes", ""), ("else", "e")):
        for number, inner in enumerate(tree.get(key, ())):
            table |= flatten(inner, f"{place}/{mark}{number}")
    return table


def as_flow(*roots: Tree) -> Flow:
    """Return the flow of *roots*: the root, and what was appended to it."""
    table: dict[str, Any] = {}
    for number, tree in enumerate(roots):
        table |= flatten(tree, str(number))
    return parse_flow({"nodes": table})


def entries(flow: Flow) -> list[Position | None]:
    """List where threads of *flow* may begin: all branches, and two items of each map."""
    found: list[Position | None] = [None]
    for place, node in flow.nodes.items():
        if node.kind == "parallel":
            found += [in_passes(flow, child) for child in flow.children(place)]
        elif node.kind == "map":
            found += [in_passes(flow, place).in_turn(item) for item in (0, 2)]
    return found


def in_passes(flow: Flow, place: str) -> Position:
    """Return a position of *place*, with pass 1 and item 1 on the way."""
    parts = list(parse_position(place).parts)
    for number in range(len(parts) - 1):
        above = "/".join(place.split("/")[: number + 1])
        if flow.nodes[above].kind in ("loop", "map"):
            parts[number] = parts[number]._replace(turn=1)
    return Position(tuple(parts))


Says = Callable[[FlowNode, int], bool]
Bound = Callable[[FlowNode, int], int]


def order(position: Position) -> tuple[tuple[bool, int, float], ...]:
    """Return the key for comparing: in one thread positions grow.

    A container's own position counts after all positions inside it.
    """
    return tuple(
        (part.is_else, part.number, math.inf if part.turn is None and last else part.turn or 0)
        for part, last in zip(
            position.parts, [False] * (len(position.parts) - 1) + [True], strict=True
        )
    )


class Chance:
    """Answers by chance, the same for the same question."""

    def __init__(self, seed: int, *, most: int = 4) -> None:
        self._seed, self._most = seed, most

    def is_true(self, node: FlowNode, iteration: int, _at: Position | None = None) -> bool:
        return random.Random(f"{self._seed} {node.place} {iteration}").random() < 0.5

    def count_bound(self, node: FlowNode, iteration: int, _at: Position | None = None) -> int:
        chance = random.Random(f"{self._seed} {node.place} {iteration} bound")
        return chance.randint(not node.has_items, self._most)


def interpret(flow: Flow, says: Says, bound: Bound, entry: Position | None = None) -> Iterator[str]:
    """Yield where a thread of *flow* stops, as a child would that knows recursion alone."""
    if entry is None:
        for place in flow.list_from("0"):
            yield from _run(flow, place, place, 0, says, bound)
    elif entry.turn is None:
        yield from _run(flow, entry.place, str(entry), _passes(flow, entry), says, bound)
    else:
        for number, place in enumerate(flow.children(entry.place)):
            yield from _run(flow, place, f"{entry}/{number}", _passes(flow, entry), says, bound)


def _passes(flow: Flow, entry: Position) -> int:
    loops = [
        part.turn
        for number, part in enumerate(entry.parts[:-1])
        if flow.nodes[Position(entry.parts[: number + 1]).place].kind == "loop"
    ]
    return (loops[-1] or 1) - 1 if loops else 0


def _run(flow: Flow, place: str, at: str, passes: int, says: Says, bound: Bound) -> Iterator[str]:
    node = flow.nodes[place]

    def run_all(below: str, mark: str, passes: int) -> Iterator[str]:
        for number, child in enumerate(flow.children(place, of_else=bool(mark))):
            yield from _run(flow, child, f"{below}/{mark}{number}", passes, says, bound)

    if node.kind in STOPS:
        yield at
    elif node.kind == "sequential":
        yield from run_all(at, "", passes)
    elif node.kind == "conditional":
        mark = "" if says(node, passes) else "e"
        yield from run_all(at, mark, passes)
    else:
        done = 0
        items = bound(node, passes) if node.has_items else None
        while items != 0:
            done += 1
            yield from run_all(f"{at}.{done}", "", done - 1)
            most = items or node.literal_bound or bound(node, done)
            if done >= most or ("condition" in node.fields and not says(node, done)):
                break
