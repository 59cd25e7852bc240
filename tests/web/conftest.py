"""The fixtures of the tests of reports: a small world."""

from commands.conftest import thread, world

__all__ = ["thread", "world"]
