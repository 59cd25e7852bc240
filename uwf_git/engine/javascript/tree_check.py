"""What is checked of a whole tree: how deep it is, and which names it reads."""

from collections.abc import Collection

from uwf_git.engine.javascript.failure import ExpressionFailed
from uwf_git.engine.javascript.syntax import Arrow, Name, Node, children

LEVELS = 100
"""How deep an expression may nest."""


def check_tree(source: str, root: Node, allowed: Collection[str] | None) -> frozenset[str]:
    """Return the names that *root* reads from outside.

    Raises:
        ExpressionFailed: one is not *allowed*, or the tree is deeper than LEVELS.
    """
    free: set[str] = set()
    waiting: list[tuple[Node, int, frozenset[str]]] = [(root, 1, frozenset())]
    while waiting:
        node, level, bound = waiting.pop()
        if level > LEVELS:
            problem = f"it nests more than {LEVELS} levels deep"
            raise ExpressionFailed(source, problem, node.position)
        if isinstance(node, Arrow):
            bound = bound.union(node.parameters)
        elif isinstance(node, Name) and node.name not in bound:
            if allowed is not None and node.name not in allowed:
                raise ExpressionFailed(source, _unknown(node.name, allowed), node.position)
            free.add(node.name)
        waiting.extend((child, level + 1, bound) for child in children(node))
    return frozenset(free)


def _unknown(name: str, allowed: Collection[str]) -> str:
    return f"unknown name `{name}`; there are {', '.join(sorted(allowed)) or 'none'}"
