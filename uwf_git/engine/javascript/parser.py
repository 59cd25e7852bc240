"""From the text of an expression to its checked syntax tree."""

from collections.abc import Collection, Iterator
from typing import NamedTuple, NoReturn

from uwf_git.engine.javascript import values
from uwf_git.engine.javascript.values import UNDEFINED, ExpressionFailed, Token

# The syntax tree of an expression: immutable, with positions that count from 0.


class Constant(NamedTuple):
    """A literal: a text in UTF-16 units, a float, a bool, None or UNDEFINED."""

    position: int
    value: object


class Name(NamedTuple):
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
    """A checked expression: its text and its tree."""

    source: str
    root: Node


def children(node: tuple[object, ...]) -> Iterator[Node]:
    """Yield the nodes directly below *node*, in its order."""
    for part in node:
        if isinstance(part, Node):
            yield part
        elif isinstance(part, tuple):
            yield from children(part)


# What is checked of a whole tree: how deep it is, and which names it reads.

LEVELS = 100
"""How deep an expression may nest."""


def check_tree(source: str, root: Node, allowed: Collection[str] | None) -> None:
    waiting: list[tuple[Node, int, frozenset[str]]] = [(root, 1, frozenset())]
    while waiting:
        node, level, bound = waiting.pop()
        if level > LEVELS:
            problem = f"it nests more than {LEVELS} levels deep"
            raise ExpressionFailed(source, problem, node.position)
        if isinstance(node, Arrow):
            bound = bound.union(node.parameters)
        elif isinstance(node, Name) and allowed is not None and node.name not in {*allowed, *bound}:
            told = f"there are {', '.join(sorted(allowed)) or 'none'}"
            raise ExpressionFailed(source, f"unknown name `{node.name}`; {told}", node.position)
        waiting.extend((child, level + 1, bound) for child in children(node))


# The parser: tokens to a checked syntax tree.

PRECEDENCE = {
    **dict.fromkeys(("===", "!==", "==", "!="), 1),
    **dict.fromkeys(("<", "<=", ">", ">="), 2),
    **dict.fromkeys(("+", "-"), 3),
    **dict.fromkeys(("*", "/", "%"), 4),
}

_LITERALS = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": UNDEFINED,
    "NaN": float("nan"),
    "Infinity": float("inf"),
}
_BUILT_IN = {"Array": "isArray", "Object": "keys"}

# How many arguments each method takes: "arrow" is one function of (x) or (x, i).
METHODS = {
    **dict.fromkeys(("includes", "startsWith", "endsWith"), "one"),
    **dict.fromkeys(("trim", "toLowerCase", "toUpperCase"), "none"),
    **dict.fromkeys(("some", "every", "filter", "map", "find"), "arrow"),
    "join": "at most one",
}
_MOST_PARAMETERS = 2

_INSTEAD = {
    "and": "JavaScript has && for `and`",
    "or": "JavaScript has || for `or`",
    "not": "JavaScript has ! for `not`",
    "/": "the grammar has no regular expressions",
    "{": "the grammar has no object literals",
    "**": "the grammar has no `**`; multiply",
    "=": "JavaScript compares with ===, and an expression cannot assign",
    "<>": "JavaScript has !== for <>",
    "++": "an expression cannot assign; `a + +b` has a space",
    "--": "an expression cannot assign; `a - -b` has a space",
}


def parse_expression(source: str, names: Collection[str] | None = None) -> Expression:
    """Return *source* as a tree, after every check that needs no data."""
    tokens, _ = values.tokenize(source)
    return parse_tokens(source, tokens, names)


def parse_tokens(source: str, tokens: list[Token], names: Collection[str] | None) -> Expression:
    """Return the expression of all *tokens*, which come from *source*."""
    try:
        root = _Parser(source, tokens).whole()
    except RecursionError:
        # The caller's own stack was nearly used up.
        raise ExpressionFailed(source, "it nests too deeply", tokens[0].position) from None
    check_tree(source, root, names)
    return Expression(source, root)


class _Parser:
    """A recursive descent with one token of lookahead; arrows need some more."""

    def __init__(self, source: str, tokens: list[Token]) -> None:
        self._source = source
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        root = self._expression()
        if self._kind != "end":
            self._unexpected()
        return root

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    @property
    def _kind(self) -> str:
        return self._token.kind

    def _take(self, *kinds: str) -> Token | None:
        token = self._token
        if token.kind not in kinds:
            return None
        self._next += 1
        return token

    def _need(self, kind: str) -> Token:
        return self._take(kind) or self._unexpected(f"expected `{kind}`, found ")

    def _expression(self) -> Node:
        start = self._token.position
        self._deeper(start)
        condition = self._logical()
        if self._take("?"):
            then = self._expression()
            self._need(":")
            condition = Choice(start, condition, then, self._expression())
        self._depth -= 1
        return condition

    def _deeper(self, at: int) -> None:
        self._depth += 1
        if self._depth > LEVELS:
            self._refuse(f"it nests more than {LEVELS} levels deep", at)

    def _logical(self) -> Node:
        """Parse `??` or `|| &&`, which JavaScript does not mix without brackets."""
        start = self._token.position
        first = self._binary()
        if self._kind == "??":
            result = self._joined("??", start, first)
        else:
            result = self._joined("||", start, self._joined("&&", start, first))
        if self._kind in {"??", "||", "&&"}:
            self._refuse("`??` beside `||` or `&&` needs brackets", self._token.position)
        return result

    def _joined(self, operator: str, start: int, first: Node) -> Node:
        operands = [first]
        while self._take(operator):
            at, operand = self._token.position, self._binary()
            operands.append(self._joined("&&", at, operand) if operator == "||" else operand)
        return Logical(start, operator, tuple(operands)) if len(operands) > 1 else first

    def _binary(self, at_least: int = 1) -> Node:
        start = self._token.position
        left = self._unary()
        while (precedence := PRECEDENCE.get(self._kind, 0)) >= at_least:
            rest = []
            while PRECEDENCE.get(self._kind) == precedence:
                token = self._take(self._kind) or self._unexpected()
                self._deeper(token.position)
                rest.append((token.kind, token.position, self._binary(precedence + 1)))
                self._depth -= 1
            left = Binary(start, left, tuple(rest))
        return left

    def _unary(self) -> Node:
        token = self._token
        operator = str(token.value) if token.kind == "name" else token.kind
        if operator not in ("!", "-", "+", "typeof"):
            return self._access()
        self._next += 1
        self._deeper(token.position)
        result = Unary(token.position, operator, self._unary())
        self._depth -= 1
        return result

    def _access(self) -> Node:
        start = self._token.position
        target = self._primary()
        links: list[Member | Call] = []
        while token := self._take(".", "?.", "["):
            links.append(self._link(token))
        if self._kind == "(":
            self._refuse("only the methods of the grammar can be called", self._token.position)
        return Access(start, target, tuple(links)) if links else target

    def _link(self, token: Token) -> Member | Call:
        optional = token.kind == "?."
        if token.kind == "[" or (optional and self._take("[")):
            key = self._expression()
            self._need("]")
            if isinstance(key, Constant) and isinstance(key.value, str):
                self._check_member(key.value, key.position)
            return Member(token.position, key, optional)
        name = self._need("name")
        text = str(name.value)
        if self._kind == "(":
            return self._call(name, optional=optional)
        self._check_member(text, name.position)
        return Member(token.position, Constant(name.position, values.to_units(text)), optional)

    def _check_member(self, name: str, at: int) -> None:
        if name in values.OBJECT:
            self._refuse(f"`{name}` belongs to every object, and cannot be read", at)

    def _call(self, name: Token, *, optional: bool) -> Call:
        method = str(name.value)
        takes = METHODS.get(method)
        if takes is None:
            self._refuse(f"`{method}` is no method of the grammar", name.position)
        self._need("(")
        argument: Node | None = None
        if takes == "arrow":
            argument = self._arrow(method)
        elif takes == "one" or (takes == "at most one" and self._kind != ")"):
            argument = self._expression()
        if not self._take(")"):
            self._unexpected(f"`{method}` takes {takes} argument: ")
        return Call(name.position, method, argument, optional)

    def _arrow(self, method: str) -> Arrow:
        start = self._token.position
        parameters: list[str] = []
        if self._kind == "name":
            parameters.append(self._parameter())
        elif self._take("("):
            parameters.append(self._parameter())
            while self._take(","):
                parameters.append(self._parameter())
            self._need(")")
        if not parameters or self._kind != "=>" or self._token.after_line_end:
            self._unexpected(f"`{method}` takes a function such as x => x.ok: ")
        if len(parameters) > _MOST_PARAMETERS or len(set(parameters)) < len(parameters):
            self._refuse("a function takes (x) or (x, i)", start)
        self._next += 1
        self._deeper(start)
        arrow = Arrow(start, tuple(parameters), self._expression())
        self._depth -= 1
        return arrow

    def _parameter(self) -> str:
        token = self._need("name")
        name = str(token.value)
        if name in values.RESERVED:
            self._refuse(f"`{name}` cannot be a parameter", token.position)
        return name

    def _primary(self) -> Node:
        token = self._token
        self._next += 1
        match token.kind:
            case "number" | "text" | "template.whole":
                return Constant(token.position, token.value)
            case "name":
                return self._named(token)
            case "template":
                return self._template(token)
            case "(":
                inner = self._expression()
                self._need(")")
                return inner
            case "[":
                return self._items(token)
        self._next -= 1
        return self._unexpected()

    def _named(self, token: Token) -> Node:
        name = str(token.value)
        if name in _LITERALS:
            return Constant(token.position, _LITERALS[name])
        if name in _BUILT_IN:
            return self._built_in(token, name)
        if name in values.RESERVED:
            self._refuse(f"unexpected `{name}`", token.position)
        return Name(token.position, name)

    def _built_in(self, token: Token, name: str) -> Node:
        method = _BUILT_IN[name]
        dot = self._take(".")
        called = self._take("name") if dot else None
        if called is None or called.value != method or not self._take("("):
            self._refuse(f"`{name}` is there for `{name}.{method}(x)` alone", token.position)
        argument = self._expression()
        self._need(")")
        return BuiltIn(token.position, f"{name}.{method}", argument)

    def _items(self, opening: Token) -> Node:
        items: list[Node] = []
        while not self._take("]"):
            if items:
                self._need(",")
            items.append(self._expression())
        return Items(opening.position, tuple(items))

    def _template(self, token: Token) -> Node:
        parts: list[Node] = [Constant(token.position, token.value)]
        while token.kind != "template.last":
            parts.append(self._expression())
            token = self._take("template.next", "template.last") or self._unexpected()
            parts.append(Constant(token.position, token.value))
        return Joined(parts[0].position, tuple(parts))

    def _unexpected(self, expected: str = "") -> NoReturn:
        token = self._token
        if token.kind == "end":
            self._refuse(f"{expected}the end" if expected else "it ends too early", token.position)
        following = self._tokens[self._next + 1].position
        found = f"`{self._source[token.position : following].strip()}`"
        instead = _INSTEAD.get(found.strip("`"))
        self._refuse(instead or f"{expected or 'unexpected '}{found}", token.position)

    def _refuse(self, problem: str, at: int) -> NoReturn:
        raise ExpressionFailed(self._source, problem, at)
