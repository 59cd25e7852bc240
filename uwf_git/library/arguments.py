"""Check the arguments of public methods against their annotations, before anything happens.

A class decorator does it for each public method, so a new method cannot forget it.
"""

import os
import types
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import Parameter, Signature, isfunction, signature
from typing import Any, TypeVar, Union, get_args, get_origin, is_typeddict

from uwf_git.errors import BadUsage

Class = TypeVar("Class", bound=type)


class WrongArgument(BadUsage, TypeError):
    """An argument has the wrong type, or a value that it cannot have."""

    code = "wrong-argument"

    def __init__(self, what: str, problem: str) -> None:
        method = what.partition("(")[0]
        super().__init__(f"{what}: {problem}", hint=f"`help({method})` describes its arguments")


def check_arguments(cls: Class) -> Class:
    """Make ``__init__`` and each public method of *cls* check its arguments.

    The methods raise ``WrongArgument``, which is a ``TypeError`` as well.
    """
    for name, method in list(vars(cls).items()):
        if isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, _checked(method, cls.__name__ if name == "__init__" else None))
    return cls


def check_number(name: str, value: float | None, *, least: int) -> None:
    """Check that *value* is None, or not below *least*.

    Raises:
        WrongArgument
    """
    if value is not None and not value >= least:
        raise WrongArgument(name, f"{value} is less than {least}")


def _checked(method: Callable[..., Any], shown: str | None) -> Callable[..., Any]:
    taken = signature(method)
    what = shown or method.__qualname__

    @wraps(method)
    def call(*args: Any, **others: Any) -> Any:
        # Often there is nothing to check, and binding takes as long as reading a commit.
        if len(args) != 1 or others or len(taken.parameters) != 1:
            _check(what, taken, args, others)
        return method(*args, **others)

    return call


def _check(what: str, taken: Signature, args: tuple[Any, ...], others: Mapping[str, Any]) -> None:
    try:
        given = taken.bind(*args, **others).arguments
    except TypeError as error:
        raise WrongArgument(f"{what}()", str(error)) from None
    for name, value in given.items():
        hint = taken.parameters[name].annotation
        problem = None if hint is Parameter.empty else find_problem(value, hint)
        if problem is not None:
            raise WrongArgument(f"{what}({name}=…)", problem)


def find_problem(value: object, hint: Any) -> str | None:
    """Return why *value* is not of the type *hint*, in one line; None if it is."""
    choices = get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    is_path = any(get_origin(each) is os.PathLike for each in choices)
    if is_path and isinstance(text, str) and "\0" in text:
        return "no path holds a NUL"
    problems = [_find_problem(value, choice) for choice in choices]
    if None in problems:
        return None
    # Only a container's own problem says more than the type of the value.
    inner = next((each for each in problems if each), None)
    return inner or f"it is of type {type(value).__name__}, not {_describe(choices)}"


def _find_problem(value: object, hint: Any) -> str | None:
    """Return what is wrong inside *value*; "" if it is of another type; None if nothing is."""
    origin = types.NoneType if hint is None else get_origin(hint) or hint
    if is_typeddict(origin):
        origin, hint = Mapping, Mapping[str, Any]
    if origin in _FITS:
        return None if _FITS[origin](value) else ""
    if not isinstance(value, origin):
        return ""
    if origin is Mapping and isinstance(value, Mapping):
        return _find_in_mapping(value, get_args(hint))
    if get_args(hint) and isinstance(value, Collection):
        return _find_in_items(value, get_args(hint)[0])
    return None


_FITS: Mapping[Any, Callable[[object], bool]] = {
    Any: lambda _value: True,
    int: lambda value: isinstance(value, int) and not isinstance(value, bool),
    float: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    Callable: callable,
    os.PathLike: lambda value: isinstance(value, os.PathLike) and isinstance(os.fspath(value), str),
}


def _find_in_mapping(value: Mapping[object, object], hints: tuple[Any, ...]) -> str | None:
    for name, each in value.items() if hints else ():
        if problem := find_problem(name, hints[0]):
            return f"one of its names is wrong: {problem}"
        if problem := find_problem(each, hints[1]):
            return f"its value of {str(name)[:60]!r} is wrong: {problem}"
    return None


def _find_in_items(value: Collection[object], hint: Any) -> str | None:
    if isinstance(value, str | bytes):
        return f"it is of type {type(value).__name__}, not a collection"
    problems = (find_problem(each, hint) for each in value)
    return next((f"one of its items is wrong: {each}" for each in problems if each), None)


def _describe(choices: tuple[Any, ...]) -> str:
    names = ("None" if each is types.NoneType else _name(each) for each in choices)
    return " or ".join(dict.fromkeys(names))


def _name(hint: Any) -> str:
    kind = get_origin(hint) or hint
    return str(getattr(kind, "__name__", kind))
