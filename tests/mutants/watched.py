"""What was seen while all tests of a room were run once."""

from collections.abc import Collection, Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from mutants import watching

MOST_SECONDS = 30.0
"""What tests may take while they are watched, which slows them down; the slowest are left out."""


class Watched(NamedTuple):
    """What was seen when all tests of a room were run once."""

    seconds: dict[str, float]
    """What each test takes. Those that fail while they are watched are left out."""

    failed: set[str]
    ran: dict[str, set[str]]
    """Which tests run a mutant's lines, by its name; an empty name is an import."""

    @classmethod
    def read(cls, notes: Path) -> "Watched":
        """Return what `watching` has noted."""
        seconds: dict[str, float] = {}
        failed = set()
        for outcome, duration, test in _rows(notes / watching.DONE):
            seconds[test] = seconds.get(test, 0.0) + float(duration)
            if outcome == "failed":
                failed.add(test)
        ran: dict[str, set[str]] = {}
        for name, test in _rows(notes / watching.RAN):
            ran.setdefault(name, set()).add(test)
        kept = {test: spent for test, spent in seconds.items() if test not in failed}
        return cls(kept, failed, ran)

    def order(self, tests: Collection[str]) -> list[str]:
        """Return those of *tests* that can be run, the quickest first, as far as time allows."""
        found = sorted((each for each in tests if each in self.seconds), key=self._rank)
        spent = accumulate(self.seconds[each] for each in found)
        return [each for each, until in zip(found, spent, strict=True) if until < MOST_SECONDS]

    def _rank(self, test: str) -> tuple[float, str]:
        return round(self.seconds[test], 1), test


def _rows(file: Path) -> Iterator[list[str]]:
    if file.exists():
        yield from (line.split("\t") for line in file.read_text().splitlines())


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]
