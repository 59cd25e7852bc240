"""JSON Schema 2020-12: check schemas and values; the only use of jsonschema.

A check fetches nothing and returns problems, never a foreign exception. Import this only where a
check is made: it costs half as much start-up as everything else together. A ``pattern`` can run for
ever: check foreign values under limits (agents/limited_fork.py).
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any

import jsonschema
from jsonschema.exceptions import UnknownType, ValidationError
from jsonschema_specifications import REGISTRY as _SPECIFICATIONS
from referencing import Registry
from referencing.exceptions import CannotDetermineSpecification, Unresolvable
from referencing.jsonschema import DRAFT202012, SchemaRegistry
from referencing.jsonschema import EMPTY_REGISTRY as _NOTHING_REMOTE

from uwf_git.errors import Problem
from uwf_git.model.node import render_path

_Validator = jsonschema.Draft202012Validator
_META = _Validator(_Validator.META_SCHEMA, format_checker=_Validator.FORMAT_CHECKER)


def _check_multiple(
    validator: Any, step: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Yield what jsonschema finds, but not of numbers as they are written: 4.35 by 0.01."""
    for error in _Validator.VALIDATORS["multipleOf"](validator, step, instance, schema):
        if (Fraction(str(instance)) / Fraction(str(step))).denominator != 1:
            yield error


@cache
def _with_decimals(kind: Any) -> Any:
    return jsonschema.validators.extend(kind, {"multipleOf": _check_multiple})  # type: ignore[no-untyped-call]  # it has no types


# What jsonschema raises for keywords with bad values.
_NO_SCHEMA = (
    ArithmeticError,
    AttributeError,
    CannotDetermineSpecification,
    LookupError,
    TypeError,
    UnknownType,
    ValueError,
    re.error,
)

_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
# What other languages call them.
_MEANT = {
    "str": "string", "text": "string", "int": "integer", "float": "number", "double": "number",
    "bool": "boolean", "list": "array", "tuple": "array", "dict": "object", "map": "object",
    "mapping": "object", "none": "null", "nil": "null", **{each: each for each in _TYPES},
}  # fmt: skip

# What Python writes for the words of JSON, and the texts in which it means nothing.
_WORDS = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\b(?:None|True|False)\b""")
_IN_JSON = {"None": "null", "True": "true", "False": "false"}

_MOST_PROBLEMS = 20
_VOCABULARIES = 8
"""So often the meta-schema finds that a schema is none."""

_LONGEST_MESSAGE = 240

_TOO_DEEP = Problem("", "it is nested too deeply to be checked")


def check_schema(schema: Any) -> list[Problem]:
    if not isinstance(schema, dict | bool):
        return [Problem("", "a schema is an object, true or false")]
    try:
        errors = islice(_META.iter_errors(schema), _VOCABULARIES * _MOST_PROBLEMS)
        found = [*dict.fromkeys(_name_type(error) or _problem(error) for error in errors)]
        return found[:_MOST_PROBLEMS] or _dead_references(schema)
    except RecursionError:
        return [_TOO_DEEP]
    except ValueError as error:
        # Of urlsplit, for an $id such as `http://[`.
        return [Problem("", f"an $id is no URL: {error}")]


def _name_type(error: ValidationError) -> Problem | None:
    """Return that a schema names a type that does not exist; None for another *error*."""
    given = error.instance
    if error.validator != "anyOf" or [*error.absolute_path][-1:] != ["type"]:
        return None
    meant = _MEANT.get(str(given).lower())
    told = f"did you mean {meant}?" if meant else f"types are {', '.join(_TYPES)}"
    return Problem(_problem(error).path, f"{given!r:.60} is no type of JSON Schema; {told}")


def check_value(schema: Any, value: Any, *, root: Any = None) -> list[Problem]:
    """Return where *value* breaks *schema*, or what is wrong with *schema*; [] if it is valid.

    *root* is the schema of which *schema* is a part, if it is not the whole.
    """
    try:
        kind = _with_decimals(jsonschema.validators.validator_for(schema, default=_Validator))
        checker = kind(schema if root is None else root, registry=_NOTHING_REMOTE)
        if root is not None:
            checker = checker.evolve(schema=schema)
        return [_problem(error) for error in islice(checker.iter_errors(value), _MOST_PROBLEMS)]
    except Unresolvable as error:
        return [Problem("", f"the schema has a $ref that leads nowhere: {error.ref}")]
    except RecursionError:
        return [_TOO_DEEP]
    except _NO_SCHEMA as error:
        why = " ".join(str(error).split())[:_LONGEST_MESSAGE]
        return [Problem("", f"the schema cannot be used: {why}")]


def point_out(schema: Any, value: Any) -> list[Problem]:
    """Return the problems of ``check_value`` for a form: the path is the JSON pointer of a field.

    A missing field is named itself. Of a choice, the alternative that *value* fits best is
    reported.
    """
    try:
        errors = _with_decimals(_Validator)(schema, registry=_NOTHING_REMOTE).iter_errors(value)
        pointed = dict.fromkeys(each for error in errors for each in _point(error))
    except (*_NO_SCHEMA, RecursionError, Unresolvable):
        return check_value(schema, value)
    return [Problem(pointer, message) for pointer, message in pointed][:_MOST_PROBLEMS]


def _point(error: ValidationError) -> Iterator[tuple[str, str]]:
    place = "".join(f"/{_escape(part)}" for part in error.absolute_path)
    if error.validator == "required":
        asked: Any = error.validator_value
        given: Any = error.instance
        missing = (name for name in asked if name not in given)
        yield from ((f"{place}/{_escape(name)}", "it is required") for name in missing)
        return
    if error.validator in {"oneOf", "anyOf"} and error.context:
        tried: dict[Any, list[ValidationError]] = {}
        for each in error.context:
            tried.setdefault(each.schema_path[0], []).append(each)
        # Nobody meant an alternative with other constants or another type.
        best = min(tried.values(), key=lambda found: (_is_another(error, found), len(found)))
        if not _is_another(error, best):
            yield from (pointed for each in best for pointed in _point(each))
            return
    schema: Any = error.schema
    described = schema.get("description") if error.validator == "pattern" else None
    told = f"{error.instance!r} does not fit: {described}" if described else error.message
    yield place, _shorten(told)


def _is_another(choice: ValidationError, found: list[ValidationError]) -> bool:
    depth = len(choice.absolute_path)
    return any(
        each.validator == "const"
        or (each.validator in {"type", "enum"} and len(each.absolute_path) == depth)
        for each in found
    )


def _escape(part: object) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def _problem(error: ValidationError) -> Problem:
    return Problem(render_path(error.absolute_path), _shorten(error.message))


def _shorten(told: str) -> str:
    told = _WORDS.sub(lambda found: _IN_JSON.get(found[0], found[0]), told)
    message = " ".join(told.split())
    if len(message) <= _LONGEST_MESSAGE:
        return message
    # jsonschema quotes the whole value first and says what is wrong with it last.
    half = _LONGEST_MESSAGE // 2
    return f"{message[:half]} … {message[-half:]}"


def _dead_references(schema: Any) -> list[Problem]:
    """List every ``$ref`` without a target: the meta-schema cannot see them."""
    registry: SchemaRegistry = _SPECIFICATIONS.combine(Registry())
    root = DRAFT202012.create_resource(schema)
    found: list[Problem] = []
    waiting = [(registry.resolver_with_root(root), root)]
    while waiting:
        outer, resource = waiting.pop()
        resolver = outer.in_subresource(resource)
        if isinstance(resource.contents, dict):
            for keyword in ("$ref", "$dynamicRef"):
                reference = resource.contents.get(keyword)
                try:
                    if isinstance(reference, str):
                        resolver.lookup(reference)
                except (Unresolvable, ValueError):
                    found.append(Problem("", f"{keyword} {reference!r} leads nowhere"))
        # Of a foreign $schema below the root the references are not checked.
        with suppress(CannotDetermineSpecification):
            waiting += [(resolver, each) for each in resource.subresources()]
    return found
