import os
from pathlib import Path

import pytest
from cli.program import Uwf


@pytest.fixture
def uwf(uwf: Uwf) -> Uwf:
    """Return the program, on a store with a thread that has ended."""
    uwf.stepped(steps=3)
    return uwf


def test_people_read_it_in_words(uwf: Uwf) -> None:
    stray = Path(str(uwf.session.repo), "objects", "tmp_obj_1")
    stray.touch()
    os.utime(stray, (1_000_000_000, 1_000_000_000))
    packer, before, after, swept = uwf("gc", "--format", "text").out.splitlines()
    assert packer == "packed by git"
    assert before.startswith("before: ")
    assert before.split(", ")[0].endswith(" loose objects")
    assert before.endswith(" KiB")
    assert after.startswith("after:  0 loose objects, 1 pack, ")
    assert swept == "swept:  1 leftover of killed processes"


def test_the_form_for_the_background_says_nothing(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "nice", asked.append)
    ran = uwf("gc", "--auto", "--detached")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert asked == [10]
    assert "--detached" not in uwf("gc", "--help").out
