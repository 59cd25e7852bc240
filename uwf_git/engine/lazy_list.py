"""Lists whose items are read when they are accessed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, SupportsIndex, TypeVar, overload

# Lazy lists: read-only lists whose items are read when they are accessed.
#
# A step must cost the same at any depth, and most agents and conditions look at the newest steps
# alone. They are real lists, because jsonata, json and dataclasses test ``isinstance(…, list)``,
# so each way around ``__getitem__`` that C code has is overridden by name.

Item = TypeVar("Item")
Other = TypeVar("Other")


_WHOLE = ("__lt__", "__le__", "__gt__", "__ge__", "__mul__", "__rmul__", "index", "count", "copy")
"""The methods that read all items."""


def _of_plain(name: str) -> Callable[..., Any]:
    def call(self: list[Any], *others: Any) -> Any:
        others = tuple(list(each) if isinstance(each, LazyList) else each for each in others)
        return getattr(list(self), name)(*others)

    return call


class LazyList(list[Item]):
    """A read-only list of the items at *places*, which *read* returns; made by ``lazy_list``.

    The length is known without reading. Slices are lazy too. The newest item that was read is kept,
    so ``steps[-1].meta, steps[-1].content`` reads once. Copies, but for ``copy.copy``, are plain
    lists.
    """

    __slots__ = ("_kept", "_places", "_read")

    _places: range
    _read: Callable[[int], Item]
    _kept: tuple[int, Any]

    def __new__(cls, items: Iterable[Any] = ()) -> Any:
        """Return a plain list: `dataclasses.asdict` makes its copy by calling the class."""
        return list(items)

    def mapped(self, change: Callable[[Item], Other]) -> "LazyList[Other]":
        """Return the list of what *change* returns for each item, as lazy as this one."""
        read = self._read
        return _make(self._places, lambda place: change(read(place)))

    def _get(self, place: int) -> Item:
        # One assignment of a pair: other Python threads may read at the same time.
        at, item = self._kept
        if at != place:
            item = self._read(place)
            self._kept = (place, item)
        found: Item = item
        return found

    @overload
    def __getitem__(self, index: SupportsIndex) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> "LazyList[Item]": ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return _make(self._places[index], self._read)
        try:
            place = self._places[index]
        except IndexError:
            raise IndexError("list index out of range") from None
        return self._get(place)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Item]:
        return map(self._get, self._places)

    def __reversed__(self) -> Iterator[Item]:
        return map(self._get, reversed(self._places))

    def __contains__(self, item: object) -> bool:
        return any(each is item or each == item for each in self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | tuple):
            return NotImplemented
        if isinstance(other, LazyList) and (self._read, self._places) == (
            other._read,
            other._places,
        ):
            return True
        return len(self) == len(other) and all(
            one is each or one == each for one, each in zip(self, other, strict=True)
        )

    def __ne__(self, other: object) -> bool:
        return NotImplemented if not isinstance(other, list | tuple) else not self == other

    __hash__ = None  # as for every list
    __lt__, __le__, __gt__, __ge__, __mul__, __rmul__, index, count, copy = map(_of_plain, _WHOLE)

    def __add__(self, other: Any) -> Any:
        return type(other)([*self, *other]) if type(other) in (list, tuple) else [*self, *other]

    def __radd__(self, other: Any) -> Any:
        return type(other)([*other, *self])

    def __copy__(self) -> "LazyList[Item]":
        return self

    def __reduce__(self) -> tuple[type[list[Item]], tuple[list[Item]]]:
        # copy.deepcopy and pickle get a plain list: a reader cannot be copied.
        return list, (list(self),)

    def __repr__(self) -> str:
        return f"<{len(self):,} items, read when accessed>"

    def _refuse(self, *_args: Any, **_more: Any) -> NoReturn:
        raise TypeError("a lazy list cannot be changed; `list(…)` of it can")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse


def lazy_list(length: int, read: Callable[[int], Item]) -> LazyList[Item]:
    return _make(range(length), read)


def map_list(items: Sequence[Item], change: Callable[[Item], Other]) -> Sequence[Other]:
    """Return what *change* returns for each item: a lazy list of a lazy list, else a tuple."""
    return items.mapped(change) if isinstance(items, LazyList) else tuple(map(change, items))


def _make(places: range, read: Callable[[int], Item]) -> LazyList[Item]:
    made: LazyList[Item] = list.__new__(LazyList)
    made._places, made._read, made._kept = places, read, (-1, None)  # noqa: SLF001 (our own)
    return made
