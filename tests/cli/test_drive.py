"""`uwf drive`: what it refuses; what it does is in tests/commands/fleet."""

import pytest
from cli.program import Uwf


def test_a_store_without_a_remote_has_no_hub(uwf: Uwf) -> None:
    ran = uwf("drive")
    assert ran.status == 1
    assert "there is no remote yet" in ran.err


@pytest.mark.parametrize("option", ["--jobs=0", "--ttl=0", "--poll=-1"])
def test_numbers_are_positive(uwf: Uwf, option: str) -> None:
    ran = uwf("drive", option)
    assert ran.status == 2
    assert option.split("=", maxsplit=1)[0] in ran.err
