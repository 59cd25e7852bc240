import os
from pathlib import Path

import pytest
from cli.program import Uwf

from uwf_git.store.gc.packing import write_gc_log
from uwf_git.store.store import open_store


@pytest.fixture
def uwf(uwf: Uwf) -> Uwf:
    """Return the program, on a store with a thread that has ended."""
    thread = uwf.begun()
    for _step in range(3):
        uwf("thread", "step", thread)
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


def test_why_the_last_one_failed_is_reported_once(uwf: Uwf) -> None:
    write_gc_log(open_store(str(uwf.session.repo)), "no space")
    assert uwf("gc").err == "the last packing in the background failed: no space\n"
    assert uwf("gc").err == ""


def test_the_form_for_the_background_says_nothing(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "nice", asked.append)
    ran = uwf("gc", "--auto", "--detached")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert asked == [10]
    assert "--detached" not in uwf("gc", "--help").out
