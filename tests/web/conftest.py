"""The fixture of the tests of reports: a small world."""

from commands.conftest import world

__all__ = ["world"]
