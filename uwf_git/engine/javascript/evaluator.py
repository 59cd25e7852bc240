"""The evaluator: a tree and data to a value, within the limits of what it may cost; templates."""

import json
import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from uwf_git.engine.javascript import parser, values
from uwf_git.engine.javascript.values import UNDEFINED, Budget, ExpressionFailed, Unanswerable

# JSON data as JavaScript reads it: elements, members and keys; and results as JSON data again.

_ARRAY_INDEXES = 2**32 - 1
_INDEX_DIGITS = 10

_AS_THEY_ARE = (float, bool, type(None), values.Undefined, list, tuple, Mapping)

# Of a result. What is deeper can be read, member by member.
_LEVELS = 200


class Reader:
    """Reads the data of one evaluation, within its budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        # By identity, with the text itself, which must not go while its identity is used.
        self._texts: dict[int, tuple[str, str]] = {}

    def value(self, raw: Any) -> Any:
        """Return a piece of data as a value (`values.py`); a value is one already."""
        if isinstance(raw, str):
            return raw if raw.isascii() else self._units(raw)
        if isinstance(raw, _AS_THEY_ARE):
            return raw
        if isinstance(raw, int):
            return values.to_double(raw)
        raise Unanswerable(f"the data holds a {type(raw).__name__}, which JSON has not")

    def _units(self, text: str) -> str:
        known = self._texts.get(id(text))
        if known is None:
            self.budget.read(len(text))
            units = values.to_units(text)
            if units is not text:
                self.budget.pair(len(units))
            known = self._texts[id(text)] = (text, units)
        return known[1]

    def elements(self, array: Any) -> Iterator[Any]:
        """Yield the values of an array."""
        self.budget.visit(len(array))
        return map(self.value, array)

    def member(self, target: Any, key: Any) -> Any:
        """Return `target[key]`.

        Raises:
            Unanswerable: *target* is null or undefined, or has the name from its prototype.
        """
        if target is None or target is UNDEFINED:
            told = values.described(key).removeprefix("the text ")
            raise Unanswerable(f"{values.to_text(target)} has no member {told}; `?.` allows that")
        name = values.to_text(key)
        if name in values.OBJECT:
            raise Unanswerable(f"`{name}` belongs to every object, and cannot be read")
        if isinstance(target, Mapping):
            self.budget.read(len(name))
            return self.value(target.get(values.from_units(name), UNDEFINED))
        if isinstance(target, bool):
            return UNDEFINED
        if isinstance(target, float):
            return _inherited(name, values.NUMBER)
        if name == "length":
            return float(len(target))
        if not _is_index(name):
            names = values.TEXT if isinstance(target, str) else values.ARRAY
            return _inherited(name, names)
        index = int(name)
        return self.value(target[index]) if index < len(target) else UNDEFINED

    def keys(self, target: Any) -> list[str]:
        """Return `Object.keys(target)` of an array or object, as data."""
        if not values.is_object(target):
            raise Unanswerable(f"Object.keys({values.described(target)}): it is no object")
        self.budget.visit(len(target))
        return in_order(target) if isinstance(target, Mapping) else [*map(str, range(len(target)))]

    def exported(self, value: Any, level: int = 0) -> Any:
        """Return a copy of *value* as JSON data (UNDEFINED stays), with numbers as doubles."""
        if isinstance(value, str):
            if not value.isascii():
                self.budget.read(len(value))
                if values.has_surrogate(value):
                    self.budget.pair(len(value))
                value = values.from_units(value)
            return value
        if isinstance(value, list | tuple):
            check_level(level)
            self.budget.visit(len(value))
            return [self.exported(each, level + 1) for each in value]
        value = self.value(value)
        if isinstance(value, float):
            is_whole = abs(value) <= values.EXACT and value.is_integer()
            # An int has no -0.
            return int(value) if is_whole and (value or math.copysign(1, value) > 0) else value
        if isinstance(value, Mapping):
            check_level(level)
            self.budget.visit(len(value))
            return {key: self.exported(value[key], level + 1) for key in in_order(value)}
        return value


def check_level(level: int) -> None:
    """Refuse data that nests deeper than Python's stack allows on every machine."""
    if level > _LEVELS:
        raise Unanswerable(f"the data nests more than {_LEVELS} levels deep")


def in_order(names: Mapping[str, Any]) -> list[str]:
    """Return the keys as JavaScript orders them: indexes first, upwards."""
    return sorted(names, key=lambda name: int(name) if _is_index(name) else _ARRAY_INDEXES)


def _inherited(name: str, names: frozenset[str]) -> Any:
    if name in names:
        raise Unanswerable(f"`{name}` is a method, and can only be called as the grammar has it")
    return UNDEFINED


def _is_index(name: str) -> bool:
    is_number = len(name) <= _INDEX_DIGITS and name.isascii() and name.isdigit()
    return is_number and str(int(name)) == name and int(name) < _ARRAY_INDEXES


# The operators that take values, not expressions.

_EQUALITY: dict[str, Callable[[Any, Any], bool]] = {
    "===": values.is_strictly_equal,
    "!==": lambda left, right: not values.is_strictly_equal(left, right),
    "==": values.is_loosely_equal,
    "!=": lambda left, right: not values.is_loosely_equal(left, right),
}
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": values.divided,
    "%": values.remainder,
}


def apply_unary(budget: Budget, name: str, operand: Any) -> Any:
    """Return one of `! typeof - +` of a value."""
    if name == "!":
        return not values.is_true(operand)
    if name == "typeof":
        return values.type_of(operand)
    number = _number(budget, operand)
    return -number if name == "-" else number


def apply_binary(budget: Budget, name: str, left: Any, right: Any) -> Any:
    if name in _EQUALITY:
        _count(budget, left, right)
        return _EQUALITY[name](left, right)
    if values.is_object(left) or values.is_object(right):
        raise Unanswerable(
            f"{values.described(left)} {name} {values.described(right)}: name a member"
        )
    if name in _ORDER:
        _count(budget, left, right)
        if not (isinstance(left, str) and isinstance(right, str)):
            left, right = values.to_number(left), values.to_number(right)
        return _ORDER[name](left, right)
    if name == "+" and (isinstance(left, str) or isinstance(right, str)):
        left, right = values.to_text(left), values.to_text(right)
        budget.make(len(left) + len(right))
        return left + right
    return _ARITHMETIC[name](_number(budget, left), _number(budget, right))


def _number(budget: Budget, value: Any) -> float:
    if isinstance(value, str):
        budget.make(len(value))
    return values.to_number(value)


def _count(budget: Budget, left: Any, right: Any) -> None:
    """Count the texts that a comparison may look at: two are read together, one as a number."""
    if isinstance(left, str) and isinstance(right, str):
        budget.read(min(len(left), len(right)))
    elif isinstance(left, str) or isinstance(right, str):
        budget.make(len(left if isinstance(left, str) else right))


# The methods of the grammar, on texts and arrays.

# Letters whose other case came with Unicode 15 to 17, which not every Python and node has.
_NEW_CASES = (
    "[\u019b\u0264\u1c89\u1c8a\ua7cb-\ua7cf\ua7d2-\ua7d5\ua7da-\ua7dc"
    "\U00010d50-\U00010d85\U00016ea0-\U00016ed3]"
)
# Beside these a sigma may end a word in one Unicode and not in another.
_NOT_BESIDE_SIGMA = (
    "[^\u0000-\u0294\u0296-\u0896\u1d00-\ua7ca\uac00-\ud7a3\uf900-\uffff\U0001f000-\U0001faff]"
)


def call_method(reader: Reader, target: Any, method: str, argument: Any) -> Any:
    """Return `target.method(argument)`; of an arrow the argument is a function of (x, i).

    Raises:
        Unanswerable: *target* has no such method, or the argument does not do.
    """
    if isinstance(target, str) and method in _OF_TEXTS:
        return _call_of_text(reader, target, method, argument)
    if values.is_array(target) and method in _OF_ARRAYS:
        return _call_of_array(reader, target, method, argument)
    raise Unanswerable(f"{values.described(target)} has no `{method}(…)` here")


_OF_TEXTS = {"includes", "startsWith", "endsWith", "trim", "toLowerCase", "toUpperCase"}
_OF_ARRAYS = {"includes", "join", "some", "every", "filter", "map", "find"}


def _call_of_text(reader: Reader, target: str, method: str, argument: Any) -> str | bool:
    match method:
        case "trim":
            reader.budget.make(len(target))
            return target.strip(values.SPACES)
        case "toLowerCase":
            return _to_case(reader, target, str.lower)
        case "toUpperCase":
            return _to_case(reader, target, str.upper)
    sought = values.to_text(argument)
    if method == "includes":
        reader.budget.search(len(target), len(sought))
        return sought in target
    reader.budget.read(len(sought))
    return target.startswith(sought) if method == "startsWith" else target.endswith(sought)


def _call_of_array(reader: Reader, target: Any, method: str, argument: Any) -> Any:
    if method == "includes":
        return _array_includes(reader, target, argument)
    if method == "join":
        return _join(reader, target, argument)
    elements = enumerate(reader.elements(target))
    told = ((each, argument(each, float(number))) for number, each in elements)
    chosen = (each for each, answer in told if values.is_true(answer))
    match method:
        case "map":
            return tuple(answer for _, answer in told)
        case "filter":
            return tuple(chosen)
        case "find":
            return next(chosen, UNDEFINED)
        case "some":
            return any(values.is_true(answer) for _, answer in told)
    return all(values.is_true(answer) for _, answer in told)


def _to_case(reader: Reader, target: str, change: Callable[[str], str]) -> str:
    reader.budget.make(len(target))
    if values.has_surrogate(target):
        reader.budget.pair(2 * len(target))
    text = values.from_units(target)
    if not text.isascii():
        found = re.search(_NEW_CASES, text)
        if not found and change is str.lower and "\u03a3" in text:
            found = re.search(_NOT_BESIDE_SIGMA, text)
        if found:
            raise Unanswerable(f"U+{ord(found[0]):04X} has another case in each Unicode")
    changed = values.to_units(change(text))
    if len(changed) > values.TEXT_UNITS:
        raise Unanswerable(f"it makes a text of more than {values.TEXT_UNITS} characters")
    return changed


def _array_includes(reader: Reader, target: Any, argument: Any) -> bool:
    if values.is_object(argument):
        if any(map(values.is_object, reader.elements(target))):
            raise Unanswerable("objects and arrays cannot be compared")
        return False
    kind = str if isinstance(argument, str) else type(argument)
    is_nan = argument != argument  # noqa: PLR0124 (NaN)
    for each in reader.elements(target):
        if not isinstance(each, kind):
            continue
        if kind is str and len(each) == len(argument):
            reader.budget.read(len(each))
        # SameValueZero: NaN is itself here.
        if each == argument or (is_nan and each != each):  # noqa: PLR0124 (NaN)
            return True
    return False


def _join(reader: Reader, target: Any, argument: Any, level: int = 0) -> str:
    check_level(level)
    separator = "," if argument is UNDEFINED else values.to_text(argument)
    pieces = []
    length = 0
    for each in reader.elements(target):
        if values.is_array(each):
            pieces.append(_join(reader, each, UNDEFINED, level + 1))
        else:
            pieces.append("" if each is None or each is UNDEFINED else values.to_text(each))
        length += len(pieces[-1]) + len(separator)
    reader.budget.make(max(0, length - len(separator)))
    return separator.join(pieces)


def evaluate(
    expression: parser.Expression, names: Mapping[str, Any], budget: Budget | None = None
) -> Any:
    """Return the value of *expression*: JSON data that shares nothing with *names*, or UNDEFINED.

    An array may hold UNDEFINED too. A number is an int if it is whole, up to 2**53, else a float;
    NaN, the infinities and -0.0 are floats. A whole number of the data is the nearest double, as
    in JSON.parse. The same arguments have the same answer on every machine. What *names* itself
    raises while it is read is not wrapped. Time and memory are bounded by `values.py`, for several
    expressions together if they share a *budget*.
    """
    return _run(expression, names, budget, lambda reader, value: reader.exported(value))


def evaluate_condition(
    expression: parser.Expression, names: Mapping[str, Any], budget: Budget | None = None
) -> bool:
    """Return whether the value of *expression* is true for JavaScript; raise as `evaluate`."""
    return bool(_run(expression, names, budget, lambda _, value: values.is_true(value)))


_Result = Callable[[Reader, Any], Any]


def _run(
    expression: parser.Expression, names: Mapping[str, Any], budget: Budget | None, result: _Result
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

    def value(self, node: parser.Node, scope: _Scope) -> Any:
        self.reader.budget.evaluate()
        return _RULES[type(node)](self, node, scope)

    def _answer(self, at: int, operation: Callable[..., Any], *operands: Any) -> Any:
        try:
            return operation(*operands)
        except Unanswerable as problem:
            raise ExpressionFailed(self._source, str(problem), at) from None

    def constant(self, node: parser.Constant, _: _Scope) -> Any:
        return node.value

    def name(self, node: parser.Name, scope: _Scope) -> Any:
        if node.name in scope:
            return scope[node.name]
        try:
            given = self._names[node.name]
        except KeyError:
            problem = f"unknown name `{node.name}`"
            raise ExpressionFailed(self._source, problem, node.position) from None
        return self.reader.value(given)

    def unary(self, node: parser.Unary, scope: _Scope) -> Any:
        operand = self.value(node.operand, scope)
        return self._answer(node.position, apply_unary, self.reader.budget, node.operator, operand)

    def binary(self, node: parser.Binary, scope: _Scope) -> Any:
        left = self.value(node.first, scope)
        for sign, position, operand in node.rest:
            right = self.value(operand, scope)
            left = self._answer(position, apply_binary, self.reader.budget, sign, left, right)
        return left

    def logical(self, node: parser.Logical, scope: _Scope) -> Any:
        for operand in node.operands:
            value = self.value(operand, scope)
            if node.operator == "??":
                decides = value is not None and value is not UNDEFINED
            else:
                decides = values.is_true(value) == (node.operator == "||")
            if decides:
                break
        return value

    def choice(self, node: parser.Choice, scope: _Scope) -> Any:
        holds = values.is_true(self.value(node.condition, scope))
        return self.value(node.then if holds else node.otherwise, scope)

    def items(self, node: parser.Items, scope: _Scope) -> Any:
        return tuple([self.value(each, scope) for each in node.items])

    def joined(self, node: parser.Joined, scope: _Scope) -> str:
        texts = []
        for part in node.parts:
            value = self.value(part, scope)
            texts.append(self._answer(part.position, values.to_text, value))
        self.reader.budget.make(sum(map(len, texts)))
        return "".join(texts)

    def built_in(self, node: parser.BuiltIn, scope: _Scope) -> Any:
        value = self.value(node.argument, scope)
        if node.function == "Array.isArray":
            return values.is_array(value)
        reader = self.reader
        return self._answer(node.position, lambda: tuple(reader.elements(reader.keys(value))))

    def access(self, node: parser.Access, scope: _Scope) -> Any:
        value = self.value(node.target, scope)
        for link in node.links:
            if link.optional and (value is None or value is UNDEFINED):
                return UNDEFINED
            self.reader.budget.evaluate()
            try:
                if isinstance(link, parser.Member):
                    value = self.reader.member(value, self.value(link.key, scope))
                else:
                    argument = self._argument(link, scope)
                    value = call_method(self.reader, value, link.method, argument)
            except Unanswerable as problem:
                raise ExpressionFailed(self._source, str(problem), link.position) from None
        return value

    def _argument(self, call: parser.Call, scope: _Scope) -> Any:
        if call.argument is None:
            return UNDEFINED
        if not isinstance(call.argument, parser.Arrow):
            return self.value(call.argument, scope)
        parameters, body = call.argument.parameters, call.argument.body

        def function(element: Any, index: float) -> Any:
            given = dict(zip(parameters, (element, index), strict=False))
            return self.value(body, {**scope, **given})

        return function


_RULES: dict[type, Callable[[_Evaluation, Any, _Scope], Any]] = {
    parser.Constant: _Evaluation.constant,
    parser.Name: _Evaluation.name,
    parser.Unary: _Evaluation.unary,
    parser.Binary: _Evaluation.binary,
    parser.Logical: _Evaluation.logical,
    parser.Choice: _Evaluation.choice,
    parser.Items: _Evaluation.items,
    parser.Joined: _Evaluation.joined,
    parser.Access: _Evaluation.access,
    parser.BuiltIn: _Evaluation.built_in,
}


# Templates: texts with `${expression}` in them.

_MARK = re.compile(r"\\?\$\{")


class Template(NamedTuple):
    """A checked template: its text, and its pieces in order."""

    source: str
    parts: tuple[str | parser.Expression, ...]


def parse_template(source: str, names: Collection[str] | None = None) -> Template:
    r"""Return *source* in pieces; `\${` is a literal `${`, and every other `\` is itself."""
    if len(source) > values.TEXT_UNITS:
        raise ExpressionFailed(source, f"it is longer than {values.TEXT_UNITS} characters", None)
    parts: list[str | parser.Expression] = []
    at = size = 0
    while mark := _MARK.search(source, at):
        parts.append(source[at : mark.start()])
        at = mark.end()
        if mark[0] == "${":
            tokens, end = values.tokenize(source, at, in_template=True)
            size += end - at
            if size > values.SOURCE_BYTES:
                problem = f"its expressions are longer than {values.SOURCE_BYTES} characters in all"
                raise ExpressionFailed(source, problem, at)
            parts.append(parser.parse_tokens(source, tokens, names))
            at = end + 1
        else:
            parts.append("${")
    parts.append(source[at:])
    return Template(source, tuple(filter(None, parts)))


def fill_template(
    template: Template, names: Mapping[str, Any], budget: Budget | None = None
) -> Any:
    """Return the template's text; of a single `${expression}` its value, as JSON data.

    Within text, a text goes as it is, null, booleans and numbers as JavaScript prints them, arrays
    and objects as JSON.stringify does. All expressions together have the limits of a single
    expression.
    """
    budget = budget or Budget()
    if len(template.parts) == 1 and isinstance(template.parts[0], parser.Expression):
        return _told(template.parts[0], _plain, evaluate(template.parts[0], names, budget))
    texts = [
        part if isinstance(part, str) else _told(part, _text, evaluate(part, names, budget), budget)
        for part in template.parts
    ]
    if sum(map(len, texts)) > values.TEXT_UNITS:
        problem = f"it makes a text of more than {values.TEXT_UNITS} characters"
        raise ExpressionFailed(template.source, problem, None)
    return "".join(texts)


def _told(part: parser.Expression, form: Callable[..., Any], *operands: Any) -> Any:
    try:
        return form(*operands)
    except Unanswerable as problem:
        raise ExpressionFailed(part.source, str(problem), part.root.position) from None


def _plain(value: Any) -> Any:
    """Return *value* if it is JSON; -0 is 0 there."""
    match value:
        case list():
            return [*map(_plain, value)]
        case dict():
            return {_plain(key): _plain(each) for key, each in value.items()}
        case str():
            if values.has_surrogate(value):
                raise Unanswerable("it has half of a character (a lone surrogate)")
            return value
        case float() if not math.isfinite(value):
            raise Unanswerable(f"{values.number_text(value)} is no JSON")
    if value is UNDEFINED:
        raise Unanswerable("it is undefined; `|| 'default'` gives a value")
    return value or 0 if isinstance(value, float) else value


def _text(value: Any, budget: Budget) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return values.number_text(float(value))
    value = _plain(value)
    if isinstance(value, str):
        return value
    pieces: list[str] = []
    _write(value, pieces, budget)
    return "".join(pieces)


def _write(value: Any, pieces: list[str], budget: Budget) -> None:
    match value:
        case list() | dict():
            pieces.append("[" if isinstance(value, list) else "{")
            for number, each in enumerate(value):
                pieces.append("," if number else "")
                _write(each, pieces, budget)
                if isinstance(value, dict):
                    pieces.append(":")
                    _write(value[each], pieces, budget)
            pieces.append("]" if isinstance(value, list) else "}")
        case str():
            budget.make(len(value))
            pieces.append(json.dumps(value, ensure_ascii=False))
        case bool() | None:
            pieces.append(json.dumps(value))
        case _:
            pieces.append(values.number_text(float(value)))


# Many expressions asked of the same data, one after the other: what they may cost together.
#
# A move of a flow may ask thousands, each within its own limits.

MOST = 10
"""They may cost as much as so many expressions that use a limit up."""


def judge_cheaply(source: str, names: Mapping[str, Any], *, share: int) -> bool | None:
    """Return whether *source* holds, at a part of what it may cost; None if it has no answer."""
    try:
        expression = parser.parse_expression(source, tuple(names))
        return evaluate_condition(expression, names, Budget(share=share))
    except ExpressionFailed:
        return None


class Together:
    """Evaluates expressions and templates, each parsed once; their costs are limited together."""

    def __init__(self) -> None:
        self._left = float(MOST)
        self._expression, self._template = cache(parser.parse_expression), cache(parse_template)

    def evaluate(self, source: str, names: Mapping[str, Any]) -> Any:
        """Return the value of *source*; None for undefined, too."""
        with self._budget(source) as budget:
            value = evaluate(self._expression(source, frozenset(names)), names, budget)
        return None if value is UNDEFINED else value

    def holds(self, source: str, names: Mapping[str, Any]) -> bool:
        with self._budget(source) as budget:
            return evaluate_condition(self._expression(source, frozenset(names)), names, budget)

    def fill(self, source: str, names: Mapping[str, Any]) -> Any:
        with self._budget(source) as budget:
            return fill_template(self._template(source, frozenset(names)), names, budget)

    @contextmanager
    def _budget(self, source: str) -> Iterator[Budget]:
        if self._left <= 0:
            problem = "it is one of too many, which took too much work together"
            raise ExpressionFailed(source, problem, None)
        budget = Budget()
        try:
            yield budget
        finally:
            self._left -= budget.spent
