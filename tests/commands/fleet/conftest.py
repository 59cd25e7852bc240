"""A hub and an agent for the tests of many machines."""

from pathlib import Path

import pytest
from commands.fleet.machines import Field, Machine


@pytest.fixture
def field(tmp_path: Path) -> Field:
    """Return a place for machines; its agent answers at once."""
    made = Field(tmp_path)
    made.let("")
    return made


@pytest.fixture
def a(field: Field) -> Machine:
    """Return machine a."""
    return field.machine("a")


@pytest.fixture
def b(field: Field) -> Machine:
    """Return machine b."""
    return field.machine("b")
