"""What one evaluation may cost: nodes, elements and characters are counted, not seconds.

With these limits an evaluation ends within seconds and 200 MB on any machine, whatever the
expression: no operation does work that is not counted before it is done.
"""

from uwf_git.engine.javascript.failure import Unanswerable

EVALUATIONS = 100_000
"""Nodes of the tree that may be evaluated; an arrow's body counts for each element."""

TEXT_UNITS = 1 << 20
"""The longest text that may be made, in UTF-16 units."""

_ELEMENTS = 500_000
_CHARACTERS = 64 << 20

# What handling a character costs: one that is made needs memory, pairs of surrogates need time.
_MAKING = 4
_PAIRING = 16

# CPython's search compares each character with each in short texts, and is linear in long ones.
_SHORT = 30_000
_COMPARED_AT_ONCE = 16


class Budget:
    """What is left of the limits; each method raises `Unanswerable` when one is used up."""

    def __init__(self, share: int = 1) -> None:
        """Begin with the limits, or with one of so many equal shares of them."""
        self._evaluations = EVALUATIONS // share
        self._elements = _ELEMENTS // share
        self._characters = _CHARACTERS // share

    @property
    def spent(self) -> float:
        """Which part of the limits is used up; 1 for each of them, if it began with all."""
        left = self._evaluations / EVALUATIONS
        left += self._elements / _ELEMENTS + self._characters / _CHARACTERS
        return 3 - left

    def evaluate(self) -> None:
        """Count one node."""
        self._evaluations -= 1
        if self._evaluations < 0:
            raise Unanswerable(f"it takes more than {EVALUATIONS} evaluations")

    def visit(self, elements: int) -> None:
        """Count elements that are looked at or copied."""
        self._elements -= elements
        if self._elements < 0:
            raise Unanswerable(f"it visits more than {_ELEMENTS} elements")

    def read(self, units: int) -> None:
        """Count a text that is looked at."""
        self._characters -= units
        if self._characters < 0:
            raise Unanswerable("it handles too much text")

    def make(self, units: int) -> None:
        """Count a text that is made; call before it is."""
        if units > TEXT_UNITS:
            raise Unanswerable(f"it makes a text of more than {TEXT_UNITS} characters")
        self.read(_MAKING * units)

    def pair(self, units: int) -> None:
        """Count a text whose surrogates are taken apart or put together."""
        self.read(_PAIRING * units)

    def search(self, units: int, sought: int) -> None:
        """Count a search for *sought* characters in a text."""
        compared = units * sought // _COMPARED_AT_ONCE if units < _SHORT else 4 * units
        self.read(units + sought + compared)
