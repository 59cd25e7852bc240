"""The syntax tree of an expression: immutable, with positions that count from 0."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Constant(NamedTuple):
    """A literal: a text in UTF-16 units, a float, a bool, None or UNDEFINED."""

    position: int
    value: object


class Name(NamedTuple):
    """A name, given from outside or a parameter."""

    position: int
    name: str


class Unary(NamedTuple):
    """One of `! - + typeof`."""

    position: int
    operator: str
    operand: "Node"


class Binary(NamedTuple):
    """Operators of one precedence, from left to right, each with its position and right side."""

    position: int
    first: "Node"
    rest: tuple[tuple[str, int, "Node"], ...]


class Logical(NamedTuple):
    """Operands joined by one of `&& || ??`."""

    position: int
    operator: str
    operands: tuple["Node", ...]


class Choice(NamedTuple):
    """`condition ? then : otherwise`."""

    position: int
    condition: "Node"
    then: "Node"
    otherwise: "Node"


class Items(NamedTuple):
    """`[a, b]`."""

    position: int
    items: tuple["Node", ...]


class Joined(NamedTuple):
    """A template literal: its texts (Constant) and expressions, in order."""

    position: int
    parts: tuple["Node", ...]


class Arrow(NamedTuple):
    """`x => body` or `(x, i) => body`; only an argument."""

    position: int
    parameters: tuple[str, ...]
    body: "Node"


class Member(NamedTuple):
    """`.name` or `[key]`, or after `?.` if *optional*."""

    position: int
    key: "Node"
    optional: bool


class Call(NamedTuple):
    """`.method(argument)`, with at most one argument."""

    position: int
    method: str
    argument: "Node | Arrow | None"
    optional: bool


class Access(NamedTuple):
    """What follows a value, up to the brackets that end the chain of `?.`."""

    position: int
    target: "Node"
    links: tuple[Member | Call, ...]


class BuiltIn(NamedTuple):
    """`Array.isArray(x)` or `Object.keys(x)`."""

    position: int
    function: str
    argument: "Node"


Node = (
    Constant | Name | Unary | Binary | Logical | Choice | Items | Joined | Arrow | Access | BuiltIn
)


class Expression(NamedTuple):
    """A checked expression: its text, its tree, and the names that it reads from outside."""

    source: str
    root: Node
    names: frozenset[str]


def children(node: Node) -> Iterable[Node]:
    """Return the nodes right below *node*."""
    match node:
        case Unary():
            return (node.operand,)
        case Binary():
            return (node.first, *(operand for _, _, operand in node.rest))
        case Choice():
            return (node.condition, node.then, node.otherwise)
        case Logical() | Items() | Joined():
            return node[-1]
        case Arrow() | BuiltIn():
            return (node[-1],)
        case Access():
            return (node.target, *_below(node.links))
        case _:
            return ()


def _below(links: tuple[Member | Call, ...]) -> Iterator[Node]:
    for link in links:
        below = link.key if isinstance(link, Member) else link.argument
        if below is not None:
            yield below
