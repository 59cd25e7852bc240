"""In which order the roles of a graph stand below one another."""

from collections.abc import Sequence

from uwf_git.model.transition import START, Graph


def order_roles(graph: Graph, written: Sequence[str]) -> list[str]:
    """Return the roles in the order in which they are drawn.

    It is the author's, *written*, unless a depth-first order has fewer ways back.
    """
    found = [role for role in _depth_first(graph) if role in set(written)]
    if _count_back(graph, found) < _count_back(graph, written):
        return found
    return list(written)


def find_reached(graph: Graph) -> set[str]:
    """Return what the start reaches, and the start."""
    found, left = {START}, [START]
    while left:
        for way in graph.get(left.pop(), ()):
            if way.to not in found:
                found.add(way.to)
                left.append(way.to)
    return found


def _depth_first(graph: Graph) -> list[str]:
    """Return what the start reaches, each after all from which it is reached without a way back."""
    finished: list[str] = []
    seen = {START}
    stack = [(START, iter(graph.get(START, ())))]
    while stack:
        name, ways = stack[-1]
        following = next((way.to for way in ways if way.to not in seen), None)
        if following is None:
            finished.append(name)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(graph.get(following, ()))))
    return finished[::-1]


def _count_back(graph: Graph, order: Sequence[str]) -> int:
    numbers = {role: number for number, role in enumerate(order)}
    return sum(
        numbers[way.to] <= number
        for role, number in numbers.items()
        for way in graph.get(role, ())
        if way.to in numbers
    )
