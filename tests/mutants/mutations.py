"""Small changes of a Python source, one at a time: the mutants that the tests have to notice.

A mutant replaces the text of one syntax node, so every other line stays as it was. Not changed:
annotations, decorators, docstrings, debug logs, and the wording of errors and hints.
"""

import ast
import hashlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

_COMPARISONS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.Mod: "*",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
}

_FAR = 50
"""A limit that is this many times as far away is as good as none."""

_LOGS = {"debug"}
_WORDINGS = {"hint", "message", "code", "help", "encoding", "__all__"}
"""Assignments and arguments that are left alone. Python takes an encoding "utf-8~" for UTF-8."""
_FOREIGN_FIRST = {"cast", "decode", "encode"}
"""Calls whose first argument is left alone: a type, or an encoding."""

_Span = tuple[int, int]
_Changes = Iterator[tuple[str, ast.AST, str]]
_TextOf = Callable[[ast.AST], str]


class Mutant(NamedTuple):
    """One change of one file."""

    path: str
    """Below the root of the project, as are all paths here."""

    scope: str
    """The function or class that holds the change, as in ``Store.find``; empty for the module."""

    kind: str
    line: int
    before: str
    """The changed statement's lines, joined; with *after* and *scope* this survives edits above."""

    after: str
    span: _Span
    """The bytes of the source that are replaced."""

    text: str
    """What stands there instead."""

    def name(self) -> str:
        """Return a name that stays the same while the changed lines and their scope do."""
        whole = repr((self.path, self.scope, self.before, self.after))
        return hashlib.sha256(whole.encode()).hexdigest()[:12]


def list_mutants(path: str, source: bytes) -> list[Mutant]:
    """Return every mutant of *source*, in the order of the text."""
    found = _Finder(path, source).find()
    # Two rules may make the same change.
    return list({(mutant.span, mutant.text): mutant for mutant in found}.values())


def apply(mutant: Mutant, source: bytes) -> bytes:
    """Return *source* with the change.

    Raises:
        SyntaxError: the changed text is no Python.
    """
    begin, end = mutant.span
    changed = source[:begin] + mutant.text.encode() + source[end:]
    ast.parse(changed)
    return changed


def lines_of(mutant: Mutant, source: bytes) -> range:
    """Return the lines one of which runs whenever the changed code does.

    Python tells lines of statements, and not each line of one that has several.
    """
    own = range(mutant.line, mutant.line + source[slice(*mutant.span)].count(b"\n") + 1)
    found = own
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.stmt, ast.ExceptHandler)):
            assert node.end_lineno is not None
            body = getattr(node, "body", None)
            end = node.end_lineno + 1 if body is None else max(body[0].lineno, node.lineno + 1)
            if node.lineno <= own.start and own.stop <= end:
                found = range(node.lineno, end)
    return found


class _Finder:
    """Walks one file."""

    def __init__(self, path: str, source: bytes) -> None:
        self._path = path
        self._source = source
        self._dump = ast.dump(ast.parse(source))
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def find(self) -> list[Mutant]:
        found: list[Mutant] = []
        for scope, node in _walk(ast.parse(self._source), ""):
            for kind, replaced, text in _changes_of(node, self._text):
                mutant = self._mutant(scope, kind, replaced, text)
                if mutant is not None:
                    found.append(mutant)
        return sorted(found, key=lambda mutant: mutant.span)

    def _text(self, node: ast.AST) -> str:
        begin, end = self._span(node)
        return self._source[begin:end].decode()

    def _span(self, node: ast.AST) -> _Span:
        assert isinstance(node, (ast.expr, ast.stmt))
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _mutant(self, scope: str, kind: str, node: ast.AST, text: str) -> Mutant | None:
        begin, end = span = self._span(node)
        first = self._source.rfind(b"\n", 0, begin) + 1
        last = self._source.find(b"\n", end)
        head, tail = self._source[first:begin].decode(), self._source[end:last].decode()
        line = self._source.count(b"\n", 0, begin) + 1
        before, after = (_one_line(head + each + tail) for each in (self._text(node), text))
        mutant = Mutant(self._path, scope, kind, line, before, after, span, text)
        try:
            changed = apply(mutant, self._source)
        except SyntaxError:
            return None
        return None if ast.dump(ast.parse(changed)) == self._dump else mutant


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _walk(node: ast.AST, scope: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield what may be changed, each node with its scope."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        scope = f"{scope}.{node.name}" if scope else node.name
    for child in _children(node):
        yield scope, child
        yield from _walk(child, scope)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    # Positions within an f-string are right only from Python 3.12 on.
    if isinstance(node, (ast.JoinedStr, ast.Raise)):
        return
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        listed = value if isinstance(value, list) else [value]
        if name == "args" and isinstance(node, ast.Call):
            word = ast.unparse(node.func).rpartition(".")[2]
            listed = listed[word in _FOREIGN_FIRST :]
        for each in listed:
            if isinstance(each, ast.AST) and not _is_left_out(each):
                yield each


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        node = node.value
        if isinstance(node, ast.Constant):
            return True
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _LOGS
    if isinstance(node, ast.Assign):
        return any(isinstance(each, ast.Name) and each.id in _WORDINGS for each in node.targets)
    if isinstance(node, ast.keyword):
        return node.arg in _WORDINGS
    # Types are for mypy.
    return isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal"


def _changes_of(node: ast.AST, text_of: _TextOf) -> _Changes:
    """Yield kind, node to be replaced and new text."""
    match node:
        case ast.Compare():
            yield from _compare(node, text_of)
        case ast.BoolOp():
            yield from _combine(node, text_of)
        case ast.UnaryOp(op=ast.Not()):
            yield "not", node, text_of(node.operand)
        case ast.BinOp():
            yield from _calculate(node, text_of)
        case ast.If(test=test) | ast.IfExp(test=test):
            yield "condition", test, f"(not ({text_of(test)}))"
        case ast.comprehension():
            yield from (("filter", test, "True") for test in node.ifs)
        case ast.Constant():
            yield from _constant(node)
        case ast.ExceptHandler(type=ast.Tuple()):
            yield from _handler(node, text_of)
        case ast.stmt():
            yield from _statement(node, text_of)


def _compare(node: ast.Compare, text_of: _TextOf) -> _Changes:
    operands = [node.left, *node.comparators]
    for changed in range(len(node.ops)):
        words = [text_of(operands[0])]
        for number, (operator, operand) in enumerate(zip(node.ops, operands[1:], strict=True)):
            own = _sign_of(operator)
            words += [_COMPARISONS[type(operator)] if number == changed else own, text_of(operand)]
        yield "comparison", node, f"({' '.join(words)})"


def _sign_of(operator: ast.cmpop) -> str:
    return ast.unparse(
        ast.Compare(ast.Name("a", ast.Load()), [operator], [ast.Name("b", ast.Load())])
    )[2:-2]


def _combine(node: ast.BoolOp, text_of: _TextOf) -> _Changes:
    texts = [f"({text_of(each)})" for each in node.values]
    own, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    yield "and-or", node, f"({f' {other} '.join(texts)})"
    for number in range(len(texts)):
        rest = texts[:number] + texts[number + 1 :]
        yield "operand", node, f"({f' {own} '.join(rest)})"


def _calculate(node: ast.BinOp, text_of: _TextOf) -> _Changes:
    is_text = any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, (str, bytes)))
        for side in (node.left, node.right)
    )
    if type(node.op) in _OPERATORS and not is_text:
        left, right = text_of(node.left), text_of(node.right)
        yield "operator", node, f"(({left}) {_OPERATORS[type(node.op)]} ({right}))"


def _constant(node: ast.Constant) -> _Changes:
    match node.value:
        case bool():
            yield "constant", node, str(not node.value)
        case int() | float():
            yield "constant", node, f"({node.value} + 1)"
            if node.value > 1:
                yield "constant", node, f"({node.value} * {_FAR})"
        case str() if node.value and not any(each.isspace() for each in node.value):
            yield "text", node, repr(f"{node.value}~")
        case bytes() if node.value and not any(each in b" \t\n" for each in node.value):
            yield "text", node, repr(node.value + b"~")


def _handler(node: ast.ExceptHandler, text_of: _TextOf) -> _Changes:
    assert isinstance(node.type, ast.Tuple)
    names = [text_of(each) for each in node.type.elts]
    for number in range(len(names)):
        rest = names[:number] + names[number + 1 :]
        yield "exception", node.type, f"({', '.join(rest)},)"


def _statement(node: ast.stmt, text_of: _TextOf) -> _Changes:
    match node:
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Continue() | ast.AugAssign():
            yield "left out", node, "pass"
        case ast.Break() | ast.Delete():
            yield "left out", node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "left out", node, "pass"
        # Whoever gets False looks at its truth alone.
        case ast.Return(value=ast.expr() as value) if text_of(value) != "False":
            yield "return", node, "return None"
