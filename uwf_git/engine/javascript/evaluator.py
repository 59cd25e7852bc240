"""The evaluator: a tree and data to a value, within the limits of `budget.py`."""

from collections.abc import Callable, Mapping
from typing import Any

from uwf_git.engine.javascript.budget import Budget
from uwf_git.engine.javascript.failure import ExpressionFailed, Unanswerable
from uwf_git.engine.javascript.methods import call_method
from uwf_git.engine.javascript.operators import apply_binary, apply_unary
from uwf_git.engine.javascript.reader import Reader
from uwf_git.engine.javascript.syntax import (
    Access,
    Arrow,
    Binary,
    BuiltIn,
    Call,
    Choice,
    Constant,
    Expression,
    Items,
    Joined,
    Logical,
    Member,
    Name,
    Node,
    Unary,
)
from uwf_git.engine.javascript.undefined import UNDEFINED
from uwf_git.engine.javascript.values import is_array, is_true, to_text


def evaluate(expression: Expression, names: Mapping[str, Any], budget: Budget | None = None) -> Any:
    """Return the value of *expression*: JSON data that shares nothing with *names*, or UNDEFINED.

    An array may hold UNDEFINED too. A number is an int if it is whole, up to 2**53, else a float;
    NaN, the infinities and -0.0 are floats. A whole number of the data is the nearest double, as
    in JSON.parse. The same arguments have the same answer on every machine. What *names* itself
    raises while it is read is not wrapped. Time and memory are bounded by `budget.py`, for several
    expressions together if they share a *budget*.

    Raises:
        ExpressionFailed: node would throw, or needs an object as a text or number; a limit is hit.
    """
    return _run(expression, names, budget, lambda reader, value: reader.exported(value))


def evaluate_condition(
    expression: Expression, names: Mapping[str, Any], budget: Budget | None = None
) -> bool:
    """Return whether the value of *expression* is true for JavaScript; raise as `evaluate`."""
    return bool(_run(expression, names, budget, lambda _, value: is_true(value)))


def _run(
    expression: Expression,
    names: Mapping[str, Any],
    budget: Budget | None,
    result: Callable[[Reader, Any], Any],
) -> Any:
    evaluation = _Evaluation(expression.source, names, budget or Budget())
    try:
        return result(evaluation.reader, evaluation.value(expression.root, {}))
    except Unanswerable as error:
        problem = str(error)
    except RecursionError:
        problem = "it nests too deeply"
    # Raised here, where the failed evaluation and its memory is released.
    raise ExpressionFailed(expression.source, problem, expression.root.position)


_Scope = dict[str, Any]


class _Evaluation:
    def __init__(self, source: str, names: Mapping[str, Any], budget: Budget) -> None:
        self.reader = Reader(budget)
        self._source = source
        self._names = names
        self._budget = budget

    def value(self, node: Node, scope: _Scope) -> Any:
        self._budget.evaluate()
        return _RULES[type(node)](self, node, scope)

    def _failed(self, problem: Unanswerable, at: int) -> ExpressionFailed:
        return ExpressionFailed(self._source, str(problem), at)

    def constant(self, node: Constant, _: _Scope) -> Any:
        return node.value

    def name(self, node: Name, scope: _Scope) -> Any:
        if node.name in scope:
            return scope[node.name]
        try:
            given = self._names[node.name]
        except KeyError:
            problem = f"unknown name `{node.name}`"
            raise ExpressionFailed(self._source, problem, node.position) from None
        return self.reader.value(given)

    def unary(self, node: Unary, scope: _Scope) -> Any:
        operand = self.value(node.operand, scope)
        try:
            return apply_unary(self._budget, node.operator, operand)
        except Unanswerable as problem:
            raise self._failed(problem, node.position) from None

    def binary(self, node: Binary, scope: _Scope) -> Any:
        left = self.value(node.first, scope)
        for operator, position, operand in node.rest:
            right = self.value(operand, scope)
            try:
                left = apply_binary(self._budget, operator, left, right)
            except Unanswerable as problem:
                raise self._failed(problem, position) from None
        return left

    def logical(self, node: Logical, scope: _Scope) -> Any:
        for operand in node.operands:
            value = self.value(operand, scope)
            if node.operator == "??":
                decides = value is not None and value is not UNDEFINED
            else:
                decides = is_true(value) == (node.operator == "||")
            if decides:
                break
        return value

    def choice(self, node: Choice, scope: _Scope) -> Any:
        holds = is_true(self.value(node.condition, scope))
        return self.value(node.then if holds else node.otherwise, scope)

    def items(self, node: Items, scope: _Scope) -> Any:
        return tuple([self.value(each, scope) for each in node.items])

    def joined(self, node: Joined, scope: _Scope) -> str:
        texts = []
        for part in node.parts:
            value = self.value(part, scope)
            try:
                texts.append(to_text(value))
            except Unanswerable as problem:
                raise self._failed(problem, part.position) from None
        self._budget.make(sum(map(len, texts)))
        return "".join(texts)

    def built_in(self, node: BuiltIn, scope: _Scope) -> Any:
        value = self.value(node.argument, scope)
        if node.function == "Array.isArray":
            return is_array(value)
        try:
            return tuple(self.reader.elements(self.reader.keys(value)))
        except Unanswerable as problem:
            raise self._failed(problem, node.position) from None

    def access(self, node: Access, scope: _Scope) -> Any:
        value = self.value(node.target, scope)
        for link in node.links:
            if link.optional and (value is None or value is UNDEFINED):
                return UNDEFINED
            self._budget.evaluate()
            try:
                if isinstance(link, Member):
                    value = self.reader.member(value, self.value(link.key, scope))
                else:
                    argument = self._argument(link, scope)
                    value = call_method(self.reader, value, link.method, argument)
            except Unanswerable as problem:
                raise self._failed(problem, link.position) from None
        return value

    def _argument(self, call: Call, scope: _Scope) -> Any:
        if call.argument is None:
            return UNDEFINED
        if not isinstance(call.argument, Arrow):
            return self.value(call.argument, scope)
        parameters, body = call.argument.parameters, call.argument.body

        def function(element: Any, index: float) -> Any:
            return self.value(
                body, {**scope, **dict(zip(parameters, (element, index), strict=False))}
            )

        return function


_RULES: dict[type, Callable[[_Evaluation, Any, _Scope], Any]] = {
    Constant: _Evaluation.constant,
    Name: _Evaluation.name,
    Unary: _Evaluation.unary,
    Binary: _Evaluation.binary,
    Logical: _Evaluation.logical,
    Choice: _Evaluation.choice,
    Items: _Evaluation.items,
    Joined: _Evaluation.joined,
    Access: _Evaluation.access,
    BuiltIn: _Evaluation.built_in,
}
