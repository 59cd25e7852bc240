"""The methods of the grammar, on texts and arrays."""

import re
from collections.abc import Callable
from typing import Any

from uwf_git.engine.javascript.budget import TEXT_UNITS
from uwf_git.engine.javascript.characters import SPACES, from_units, has_surrogate, to_units
from uwf_git.engine.javascript.failure import Unanswerable
from uwf_git.engine.javascript.reader import Reader, check_level
from uwf_git.engine.javascript.undefined import UNDEFINED
from uwf_git.engine.javascript.values import described, is_array, is_object, is_true, to_text

# Letters whose other case came with Unicode 15 to 17, which not every Python and node has.
_NEW_CASES = (
    "[\u019b\u0264\u1c89\u1c8a\ua7cb-\ua7cf\ua7d2-\ua7d5\ua7da-\ua7dc"
    "\U00010d50-\U00010d85\U00016ea0-\U00016ed3]"
)
# Beside these a sigma may end a word in one Unicode and not in another.
_SIGMA = "\u03a3"
_NOT_BESIDE_SIGMA = (
    "[^\u0000-\u0294\u0296-\u0896\u1d00-\ua7ca\uac00-\ud7a3\uf900-\uffff\U0001f000-\U0001faff]"
)

_Test = Callable[[Any, float], Any]


def call_method(reader: Reader, target: Any, method: str, argument: Any) -> Any:
    """Return `target.method(argument)`; of an arrow the argument is a function of (x, i).

    Raises:
        Unanswerable: *target* has no such method, or the argument does not do.
    """
    if isinstance(target, str) and method in _OF_TEXTS:
        return _OF_TEXTS[method](reader, target, argument)
    if is_array(target) and method in _OF_ARRAYS:
        return _OF_ARRAYS[method](reader, target, argument)
    raise Unanswerable(f"{described(target)} has no `{method}(…)` here")


def _text_includes(reader: Reader, target: str, argument: Any) -> bool:
    sought = to_text(argument)
    reader.budget.search(len(target), len(sought))
    return sought in target


def _starts_with(reader: Reader, target: str, argument: Any) -> bool:
    sought = to_text(argument)
    reader.budget.read(len(sought))
    return target.startswith(sought)


def _ends_with(reader: Reader, target: str, argument: Any) -> bool:
    sought = to_text(argument)
    reader.budget.read(len(sought))
    return target.endswith(sought)


def _trim(reader: Reader, target: str, _: Any) -> str:
    reader.budget.make(len(target))
    return target.strip(SPACES)


def _to_lower(reader: Reader, target: str, _: Any) -> str:
    return _to_case(reader, target, str.lower)


def _to_upper(reader: Reader, target: str, _: Any) -> str:
    return _to_case(reader, target, str.upper)


def _to_case(reader: Reader, target: str, change: Callable[[str], str]) -> str:
    reader.budget.make(len(target))
    if has_surrogate(target):
        reader.budget.pair(2 * len(target))
    text = from_units(target)
    if not text.isascii():
        found = re.search(_NEW_CASES, text)
        if not found and change is str.lower and _SIGMA in text:
            found = re.search(_NOT_BESIDE_SIGMA, text)
        if found:
            raise Unanswerable(f"U+{ord(found[0]):04X} has another case in each Unicode")
    changed = to_units(change(text))
    if len(changed) > TEXT_UNITS:
        raise Unanswerable(f"it makes a text of more than {TEXT_UNITS} characters")
    return changed


def _array_includes(reader: Reader, target: Any, argument: Any) -> bool:
    if is_object(argument):
        if any(map(is_object, reader.elements(target))):
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
    separator = "," if argument is UNDEFINED else to_text(argument)
    pieces = []
    length = 0
    for each in reader.elements(target):
        if is_array(each):
            pieces.append(_join(reader, each, UNDEFINED, level + 1))
        else:
            pieces.append("" if each is None or each is UNDEFINED else to_text(each))
        length += len(pieces[-1]) + len(separator)
    reader.budget.make(max(0, length - len(separator)))
    return separator.join(pieces)


def _some(reader: Reader, target: Any, test: _Test) -> bool:
    return any(is_true(test(each, float(i))) for i, each in enumerate(reader.elements(target)))


def _every(reader: Reader, target: Any, test: _Test) -> bool:
    return all(is_true(test(each, float(i))) for i, each in enumerate(reader.elements(target)))


def _filter(reader: Reader, target: Any, test: _Test) -> tuple[Any, ...]:
    elements = enumerate(reader.elements(target))
    return tuple(each for i, each in elements if is_true(test(each, float(i))))


def _map(reader: Reader, target: Any, change: _Test) -> tuple[Any, ...]:
    return tuple(change(each, float(i)) for i, each in enumerate(reader.elements(target)))


def _find(reader: Reader, target: Any, test: _Test) -> Any:
    for i, each in enumerate(reader.elements(target)):
        if is_true(test(each, float(i))):
            return each
    return UNDEFINED


_Method = Callable[[Reader, Any, Any], Any]

_OF_TEXTS: dict[str, _Method] = {
    "includes": _text_includes,
    "startsWith": _starts_with,
    "endsWith": _ends_with,
    "trim": _trim,
    "toLowerCase": _to_lower,
    "toUpperCase": _to_upper,
}

_OF_ARRAYS: dict[str, _Method] = {
    "includes": _array_includes,
    "join": _join,
    "some": _some,
    "every": _every,
    "filter": _filter,
    "map": _map,
    "find": _find,
}
