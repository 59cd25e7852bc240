"""The evaluation context: a dict that loads the history of a thread only when it is read.

A step must cost the same at any depth, and most conditions look at ``meta``
alone. It is a real dict because jsonata tests ``isinstance(…, dict)``, so each way around
``__getitem__`` that C code has is overridden by name. It reads as the plain dict would, loads at
most once successfully, and cannot be changed. A history that is a ``LazyList`` stays one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from uwf_git.engine.lazy_list import LazyList

HISTORY = "history"


class LazyContext(dict[str, Any]):
    """A read-only dict of *known* values, and a history that comes from *load* on first access."""

    __slots__ = ("_load",)

    def __init__(self, known: Mapping[str, Any], load: Callable[[], Iterable[Any]]) -> None:
        super().__init__(known)
        # The key is there from the start, so len, `in` and keys() are right without loading.
        super().__setitem__(HISTORY, None)
        self._load: Callable[[], Iterable[Any]] | None = load

    @property
    def is_loaded(self) -> bool:
        """Return True if the history has been read."""
        return self._load is None

    def mapped(self, change: Callable[[Any], Any]) -> "LazyContext":
        """Return the same context with *change* applied to every value, lazily to the history."""
        known = {key: change(dict.__getitem__(self, key)) for key in self if key != HISTORY}

        def load() -> Any:
            history = self[HISTORY]
            return history.mapped(change) if isinstance(history, LazyList) else change(history)

        return LazyContext(known, load)

    def _loaded(self) -> dict[str, Any]:
        if self._load is not None:
            history = self._load()
            known = history if isinstance(history, LazyList) else list(history)
            super().__setitem__(HISTORY, known)
            # Only after success: a loader that failed is called again, and fails again, instead of
            # "[]".
            self._load = None
        return self

    def __getitem__(self, key: str) -> Any:
        return dict.__getitem__(self._loaded() if key == HISTORY else self, key)

    def get(self, key: str, default: Any = None, /) -> Any:
        """Return the value of *key*, or *default*."""
        return dict.get(self._loaded() if key == HISTORY else self, key, default)

    def values(self) -> Any:
        """Return all values; this loads."""
        return dict.values(self._loaded())

    def items(self) -> Any:
        """Return all keys and values; this loads."""
        return dict.items(self._loaded())

    def copy(self) -> dict[str, Any]:
        """Return a plain dict that may be changed; this loads."""
        return dict(self.items())

    def __iter__(self) -> Iterator[str]:
        # Names only, so nothing is loaded. With this override CPython's `dict(context)`,
        # `{**context}` and `other.update(context)` call keys() and __getitem__ instead of copying
        # the storage as it is (PyDict_Merge tests for exactly this).
        return dict.__iter__(self)

    def __eq__(self, other: object) -> bool:
        return dict.__eq__(self._loaded(), _plain(other))

    def __ne__(self, other: object) -> bool:
        return dict.__ne__(self._loaded(), _plain(other))

    __hash__ = None  # as for every dict

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        # copy.copy, copy.deepcopy and pickle get a plain dict: a loader cannot be copied.
        return dict, (self.copy(),)

    def __repr__(self) -> str:
        shown = "" if self.is_loaded else ", history not loaded"
        return f"LazyContext({dict.__repr__(self)}{shown})"

    def _refuse(self, *_args: Any, **_more: Any) -> NoReturn:
        raise TypeError("an evaluation context cannot be changed")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


def _plain(other: object) -> object:
    return other._loaded() if isinstance(other, LazyContext) else other  # noqa: SLF001 (our own)
