"""Conditions: check and evaluate the JSONata text on a transition; the only use of jsonata.

A condition and a context have one answer, on every machine and at any time. What cannot be
evaluated raises, and is never "false"; the context is not changed. Time and memory are limited by
the caller (`uwf_git.agents.limited_fork`), since hostile text can keep even the parser busy.

jsonata 0.7.1 needs workarounds, each below: it has functions that read the clock and random
numbers, it recurses as far as Python allows, it prints to stdout, it takes JSON's null for
"undefined" inside its input, and some answers differ from JSONata 2.2.2 (JavaScript), which is the
judge: `jsonata_functions.py` has the right ones. What still differs is
in docs/workflows.md.
"""

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple, NoReturn

from jsonata.functions import Functions
from jsonata.jexception import JException
from jsonata.jsonata import Jsonata
from jsonata.parser import Parser
from jsonata.regex_engine import RegexFlags
from jsonata.signature import Signature
from jsonata.utils import Utils

from uwf_git.engine import jsonata_functions
from uwf_git.engine.jsonata_functions import JavaScriptPattern, refusal
from uwf_git.engine.moderator import LazyList
from uwf_git.errors import Refused, UwfError
from uwf_git.model.text import cut

SOURCE_BYTES = 16 * 1024
"""The longest condition."""

NESTING = 200
"""How deep a condition's text may nest; every further ``or`` of a chain is one level more."""

RECURSION = 500
"""How deep its evaluation may recurse. A function call takes about four levels."""

FORBIDDEN = frozenset({"now", "millis", "random", "shuffle", "eval"})
"""Functions whose result varies, and the function that could hide their names."""

# Where the parts of an expression are that have its context.
_IN_PLACE = {"lhs", "rhs", "arguments", "condition", "then", "_else"}
_IN_PLACE |= {"expressions", "expression", "body"}

# Each character is at most one token, parsed once and processed once.
_PARSER_STEPS = 2 * SOURCE_BYTES

_SHOWN = 200

_MEMBERS = {"n": "numbers", "s": "strings", "o": "objects"}

# What people write who know JavaScript; before it what is skipped: texts, comments, /…/.
_JAVASCRIPT = re.compile(
    r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`|/\*.*?\*/"""
    r"|(?:^|[({\[,:?=>&]|\b(?:and|or|in)\b)\s*/(?:\\.|[^/\\])+/"
    r"|(?P<operator>[=!]==?|&&|\|\|)"
    r"|(?:^|[({\[,:?=]|\b(?:and|or)\b)\s*(?P<negation>!)",
    re.DOTALL,
)
_IN_JSONATA = {
    "==": "compares with =",
    "===": "compares with =",
    "!==": "compares with !=",
    "&&": "joins conditions with `and`",
    "||": "joins conditions with `or`",
    "!": "negates with $not(...)",
}


def check_condition(source: str) -> str | None:
    """Return what is wrong with *source*, in one line, or None.

    Forbidden names are refused wherever they occur, so an alias such as ``($f := $random; $f())``
    is found too; so are unknown names, which would otherwise stop a thread only when it gets there.
    Hostile text can make this slow: call it under limits.
    """
    try:
        return _bad_name(_parse(source))
    except Exception as error:  # noqa: BLE001 (jsonata lets IndexError, KeyError, re.error… out)
        return _told(error)


@lru_cache(maxsize=1)
def _parse(source: str) -> Any:
    """Return the tree of *source*, for those who ask one after another."""
    return _Program(source).ast


def list_paths(source: str) -> list[list[str]]:
    """List the names that *source* reads in its context, each with the member that it reads of it.

    Behind a dot or in a bracket the context is another.
    """
    paths = [node.steps[:2] for node in _walk(_parse(source), _in_place) if node.steps]
    return [
        [step.value for step in steps if step.type == "name"]
        for steps in paths
        if steps[0].type == "name"
    ]


def evaluate_condition(source: str, context: Mapping[str, Any]) -> bool:
    """Evaluate *source* as JSONata's ``$boolean``; undefined is false, errors of *context* pass."""
    return bool(_run(source, context, Jsonata.boolize))


def evaluate_value(source: str, context: Mapping[str, Any]) -> Any:
    """Evaluate *source*, and return its value as JSON; undefined is None."""
    return _run(source, context, jsonata_functions.plain_value)


def _run(source: str, context: Mapping[str, Any], result: Callable[[Any], Any]) -> Any:
    try:
        return result(_Program(source).evaluate(_own_value(context)))
    except UwfError:
        raise
    except Exception as error:  # noqa: BLE001 (as above; MemoryError and RecursionError included)
        cause = _cause(error)
        if isinstance(cause, UwfError):
            raise cause from None
        problem = _told(error)
    # Raised here, where the failed evaluation and all its memory is already released.
    raise Refused(
        f"condition `{_one_line(source)}` failed: {problem}",
        code="condition-failed",
        hint="a thread keeps its workflow: correct the workflow's file",
        condition=source,
        problem=problem,
    )


class _BoundedParser(Parser):  # type: ignore[misc]  # jsonata has no types
    """jsonata's parser, with a nesting limit that does not depend on Python's stack."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._steps = 0

    def expression(self, rbp: int) -> Any:
        return self._one_deeper(super().expression, rbp)

    def process_ast(self, expr: Any) -> Any:
        return self._one_deeper(self._processed, expr)

    def _processed(self, expr: Any) -> Any:
        if expr is None:
            return None
        if expr.type == "string":
            # An escaped pair of surrogates is one character.
            units = expr.value.encode("utf-16", "surrogatepass")
            expr.value = units.decode("utf-16", "surrogatepass")
        shared = _default_of(expr)
        if shared is None:
            return super().process_ast(expr)
        # jsonata processes the left side of `?:` and `??` a second time, which changes it.
        expr.then = None
        result = super().process_ast(expr)
        result.then = result.condition if shared == "?:" else result.condition.arguments[0]
        return result

    def _one_deeper(self, rule: Callable[[Any], Any], operand: Any) -> Any:
        if self._depth == NESTING or self._steps == _PARSER_STEPS:
            raise refusal(f"it nests too deeply (at most {NESTING} levels)")
        self._depth += 1
        self._steps += 1
        try:
            return rule(operand)
        finally:
            self._depth -= 1


class _Signature(Signature):  # type: ignore[misc]  # jsonata has no types
    """What a function takes, as jsonata says, but null is no missing argument."""

    def __init__(self, expected: Signature) -> None:
        self.__dict__ = expected.__dict__

    def validate(self, args: Any, context: Any) -> Any:
        try:
            return super().validate(args, context)
        except JException as error:
            members = _MEMBERS.get(error.extra or "")
            kinds = ", ".join(Functions.type(each) or "undefined" for each in args or [context])
            told = f"takes a list of {members}" if members else f"does not take ({kinds})"
            raise refusal(f"${self.function_name} {told}") from None

    def get_symbol(self, value: Any) -> str:
        return "l" if value is Utils.NULL_VALUE else str(super().get_symbol(value))


class _Program(Jsonata):  # type: ignore[misc]  # jsonata has no types
    """One parsed condition, with everything that is not repeatable removed."""

    def __init__(self, source: str) -> None:
        size = len(source.encode("utf-8", "surrogatepass"))
        if size > SOURCE_BYTES:
            raise refusal(f"it is too long ({size} bytes, at most {SOURCE_BYTES})")
        self._depth = 0
        # jsonata keeps one parser per Python thread here; ours is new each time, as are its
        # counters.
        parser = Jsonata.PARSER.parser = _BoundedParser()
        try:
            super().__init__(source, _regex)
        except Exception as error:
            told = _javascript_in(source)
            if told is not None:
                raise refusal(told) from None
            if isinstance(error, KeyError):
                # What the tokenizer raises for a lone `!` or `~`, and for text that breaks off.
                raise _syntax_error(f"unknown operator {error}", parser) from None
            if isinstance(error, IndexError):
                raise _syntax_error("unfinished text", parser) from None
            raise
        # Validation would walk, and so load, the whole context (FACTS 9).
        self.set_validate_input(False)
        # Conversion walks the result and writes into it; the sentinel is falsy as it is.
        self.set_output_convert_nulls(False)
        for name in FORBIDDEN:
            self.register_lambda(name, partial(_forbid, name))
        for name, function in jsonata_functions.OURS.items():
            self.register_function(name, function)

    def eval(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002 (jsonata's name)
        # jsonata's own Timebox does the same with two variables that a condition can rebind, and
        # miscounts after array constructors.
        if self._depth == RECURSION:
            raise refusal(f"it recurses too deeply (at most {RECURSION} levels)")
        self._depth += 1
        try:
            return super().eval(expr, input, environment)
        finally:
            self._depth -= 1

    def validate_arguments(self, signature: Any, args: Any, context: Any) -> Any:
        expected = getattr(signature, "signature", None)
        return args if expected is None else _Signature(expected).validate(args, context)

    # The parameters have jsonata's names, which calls it by keyword.
    def apply_inner(self, proc: Any, args: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        # jsonata raises this too, but prints "Proc not found" to stdout first.
        if not self.is_function_like(proc):
            raise JException("T1006", 0)
        if isinstance(proc, JavaScriptPattern):
            return jsonata_functions.match_chain(proc.finditer(*args))
        return super().apply_inner(proc, args, input, environment)

    def evaluate_condition(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002 (jsonata)
        # The left side of `?:` and `??` is evaluated once; n of them nested would cost 2^n.
        shared = _default_of(expr)
        if shared is None:
            return super().evaluate_condition(expr, input, environment)
        value = self.eval(expr.then, input, environment)
        holds = self.boolize(value) if shared == "?:" else value is not None
        return value if holds else self.eval(expr._else, input, environment)  # noqa: SLF001 (jsonata)

    def evaluate_string_concat(self, lhs: Any, rhs: Any) -> str:
        return "".join(jsonata_functions.string(each) or "" for each in (lhs, rhs))

    def evaluate_includes_expression(self, lhs: Any, rhs: Any) -> bool:
        if lhs is None or rhs is None:
            return False
        values = rhs if isinstance(rhs, list) else [rhs]
        return any(jsonata_functions.is_identical(lhs, each) for each in values)

    def evaluate_numeric_expression(self, lhs: Any, rhs: Any, op: Any) -> Any:
        told = super().evaluate_numeric_expression(lhs, rhs, op)
        # jsonata drops the fraction of a remainder.
        return told if told is None or op != "%" else Utils.convert_number(math.fmod(lhs, rhs))


def _javascript_in(source: str) -> str | None:
    """Say what JSONata has instead of the first operator of JavaScript in *source*."""
    for found in _JAVASCRIPT.finditer(source):
        operator = found["operator"] or found["negation"]
        if operator in _IN_JSONATA:
            place = found.end() - len(operator) + 1
            return f"JSONata {_IN_JSONATA[operator]}, not {operator} (at character {place})"
    return None


def _default_of(expr: Any) -> str | None:
    """Return "?:" or "??" if *expr* is one of these: its `then` is its condition's own node."""
    if expr.type != "condition" or expr.then is None:
        return None
    if expr.then is expr.condition:
        return "?:"
    asked = expr.condition.arguments
    return "??" if asked and asked[0] is expr.then else None


def _regex(pattern: str, flags: RegexFlags) -> JavaScriptPattern:
    with warnings.catch_warnings():
        # "Possible nested set" is advice for Python programmers; it would go to stderr.
        warnings.simplefilter("ignore")
        try:
            return JavaScriptPattern(
                pattern, ignore_case=flags.case_insensitive, by_line=flags.multiline
            )
        except ValueError as error:
            raise refusal(f"bad regular expression /{pattern}/: {error}") from None


def _forbid(name: str, *_args: Any) -> NoReturn:
    raise refusal(_forbidding(name))


def _own_value(value: Any) -> Any:
    """Copy a JSON value into the form in which jsonata gives right answers.

    A copy, since grouping an empty array writes an undefined into it. None becomes jsonata's null,
    since inside an array or object it takes None for undefined (``meta.tags = [null]``). 1.0
    becomes 1: both have the same name in the store, and must route alike.
    """
    if value is None:
        return Utils.NULL_VALUE
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, (dict, Mapping)):
        return {key: _own_value(each) for key, each in value.items()}
    if isinstance(value, LazyList):
        return value.mapped(_own_value)
    if isinstance(value, (list, tuple)):
        return [_own_value(each) for each in value]
    return value


def _bad_name(ast: Any) -> str | None:
    """Return what is wrong with the variables in *ast*: one is forbidden, or bound nowhere."""
    used: dict[str, None] = {}
    bound = {"", "$", *Jsonata.static_frame.bindings}
    for node in _walk(ast):
        if node.type == "variable":
            used[str(node.value)] = None
        if node.type == "bind":
            bound.add(str(node.lhs.value))
        if node.type == "lambda":
            bound.update(str(each.value) for each in node.arguments)
        # `Order@$o#$i` binds by attributes of the step, `Order[1]#$i` by a stage.
        names = (node.focus, node.index, node.type == "index" and node.value)
        bound.update(each for each in names if isinstance(each, str))
    for name in used:
        if name in FORBIDDEN:
            return _forbidding(name)
    for name in used:
        if name not in bound:
            from difflib import get_close_matches  # noqa: PLC0415 (2 ms; only mistakes need it)

            near = get_close_matches(name, bound - FORBIDDEN, n=1)
            meant = f"; did you mean ${near[0]}?" if near else ""
            return _one_line(f"${name} is not a function of JSONata, and not defined{meant}")
    return None


def _in_place(node: Any) -> list[Any]:
    """Return what is directly in *node* and has the same context."""
    if node.type == "path":
        return [node.steps[0]]
    return [part for name, part in vars(node).items() if name in _IN_PLACE]


def _walk(
    ast: Any, below: Callable[[Any], Iterable[Any]] = lambda node: vars(node).values()
) -> Iterator[Any]:
    """Yield every node that can be reached from *ast* by *below*, each of them once."""
    seen: set[int] = set()
    waiting: list[Any] = [ast]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, Parser.Symbol) and id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(below(node))


def _forbidding(name: str) -> str:
    return f"${name} is not allowed, since routing must be repeatable"


def _syntax_error(text: str, parser: Any) -> Any:
    return refusal(f"Syntax error: {text} (at character {parser.lexer.position})")


def _cause(error: BaseException) -> BaseException:
    """Return the first error: `and` and `or` replace it by a bare "Unexpected"."""
    while isinstance(error, JException) and error.error == "Unexpected" and error.__context__:
        error = error.__context__
    return error


def _told(error: BaseException) -> str:
    error = _cause(error)
    match error:
        case MemoryError():
            return "it ran out of memory"
        case RecursionError():
            return "it nests or recurses too deeply"
        case JException() if str(error.error).startswith("S"):
            return f"{_one_line(str(error))} (at character {error.location})"
        case JException(error="T0410") | TypeError() | AttributeError() | OverflowError():
            return "it cannot be evaluated with these values"
        case JException() if error.error != "D3137":
            # jsonata's words were translated from Java.
            return _one_line(str(error).replace(" Object ", " function "))
        case _:
            return _one_line(str(error)) or type(error).__name__


def _one_line(text: str) -> str:
    """Fit *text* into an error's one line: it may hold agents' output, with escapes."""
    seen = "".join(char if char.isprintable() else " " for char in text[: 2 * _SHOWN])
    return cut(" ".join(seen.split()), _SHOWN)


# Templates of flows in JSONata: where the expressions in a text begin and end.
#
# JSONata's own braces, strings and comments may hold a ``}``, so an expression ends at the first
# ``}`` before which the text is an expression.


class Piece(NamedTuple):
    text: str
    is_expression: bool = False


def split_template(source: str) -> tuple[Piece, ...]:
    r"""Return the pieces of *source* in order; ``\${`` is a literal ``${``."""
    pieces: list[Piece] = []
    literal, at = "", 0
    while (start := source.find("${", at)) >= 0:
        if start > at and source[start - 1] == "\\":
            literal, at = literal + source[at : start - 1] + "${", start + 2
            continue
        end = _find_end(source, start + 2)
        pieces.append(Piece(literal + source[at:start]))
        pieces.append(Piece(source[start + 2 : end], is_expression=True))
        literal, at = "", end + 1
    pieces.append(Piece(literal + source[at:]))
    return tuple(each for each in pieces if each.text)


def _find_end(source: str, start: int) -> int:
    end, problem = start - 1, None
    for _count in range(100):
        end = source.find("}", end + 1)
        if end < 0 or end - start > SOURCE_BYTES:
            break
        found = check_condition(source[start:end]) if source[start:end].strip() else "it is empty"
        if found is None:
            return end
        problem = problem or found
    raise ValueError(f"in ${{{source[start : start + 40]}: {problem or 'no } ends it'}")
