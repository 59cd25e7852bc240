"""The codes of errors, read from the program: where each is raised, with its message and hint."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from uwf_git import errors

PACKAGE = Path(__file__).parents[1] / "uwf_git"

_BASES = {
    name: each
    for name, each in vars(errors).items()
    if isinstance(each, type) and issubclass(each, errors.UwfError)
}


class ErrorCode(NamedTuple):
    """A code, and what is said with it."""

    code: str
    exit_status: int
    message: str
    """With `{…}` where words of the case stand; empty if all of it is."""

    hint: str
    path: Path


def list_codes() -> list[ErrorCode]:
    """Return the codes, sorted; each class or function of the program that has one, once."""
    trees = {path: ast.parse(path.read_bytes()) for path in sorted(PACKAGE.rglob("*.py"))}
    classes = {
        node.name: node
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = [code for path, tree in trees.items() for code in _codes_of(path, tree, classes)]
    return sorted(found, key=lambda each: (each.code, each.path))


def _codes_of(path: Path, tree: ast.AST, classes: dict[str, ast.ClassDef]) -> Iterator[ErrorCode]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            code = _keyword(node, "code")
            if isinstance(code, ast.Constant) and isinstance(node.func, ast.Name):
                status = _exit_status(node.func.id, classes)
                yield ErrorCode(str(code.value), status, *_words(node), path)
        elif isinstance(node, ast.ClassDef) and node.name not in _BASES:
            code = next(iter(_assigned(node, "code")), None)
            calls = [each for each in ast.walk(node) if _is_base_call(each)]
            words = _words(calls[-1]) if calls else ("", "")
            if isinstance(code, ast.Constant):
                status = _exit_status(node.name, classes)
                yield ErrorCode(str(code.value), status, *words, path)


def _is_base_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "__init__"
    )


def _exit_status(name: str, classes: dict[str, ast.ClassDef]) -> int:
    if name in _BASES:
        return _BASES[name].exit_status
    for status in _assigned(classes[name], "exit_status"):
        if isinstance(status, ast.Constant):
            return int(str(status.value))
    base = classes[name].bases[0]
    assert isinstance(base, ast.Name)
    return _exit_status(base.id, classes)


def _assigned(node: ast.ClassDef, name: str) -> Iterator[ast.expr]:
    for each in node.body:
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == name:
            yield each.value


def _words(node: ast.AST) -> tuple[str, str]:
    assert isinstance(node, ast.Call)
    message = _text(node.args[0]) if node.args else ""
    hint = _keyword(node, "hint")
    return message, "" if hint is None else _text(hint)


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in node.keywords if each.arg == name), None)


def _text(node: ast.expr) -> str:
    """Return the words of a literal; of what is chosen by the case, the alternatives."""
    if isinstance(node, ast.Constant):
        return "" if node.value is None else str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    if isinstance(node, ast.FormattedValue):
        return "{" + _name(node.value) + "}"
    if isinstance(node, ast.IfExp):
        return " / ".join(filter(None, (_text(node.body), _text(node.orelse))))
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return "{…}"


def _name(node: ast.expr) -> str:
    """Return the name of a value, as it stands in the program; of anything longer a mark."""
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else "…"
