"""JSON values that nobody can change, so that one copy serves all readers.

They are dicts and lists for all that reads: ``==``, ``json``, ``isinstance``. A copy, by
``copy.deepcopy`` as well, can be changed.
"""

import copy
from typing import Any, NoReturn


def freeze(value: Any) -> Any:
    """Return a copy of a JSON value that cannot be changed; at most as deep as a node's."""
    # One frame a level, as for canonical values.
    if isinstance(value, dict):
        fields: dict[str, Any] = {}
        for key, item in value.items():
            fields[key] = freeze(item)
        return FrozenDict(fields)
    if isinstance(value, list):
        items: list[Any] = []
        for item in value:
            items.append(freeze(item))  # noqa: PERF401 (see above)
        return FrozenList(items)
    return value


def _refuse(self: object, *_given: object, **_named: object) -> NoReturn:
    raise TypeError(f"this {type(self).__bases__[0].__name__} is shared and cannot be changed")


class FrozenDict(dict[str, Any]):
    """A dict that raises TypeError when it is changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(item, memo) for key, item in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A list that raises TypeError when it is changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(item, memo) for item in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)
