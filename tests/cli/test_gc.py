import os
from pathlib import Path

import pytest
from cli.program import Uwf

from uwf_git.store.gc.packing import hold_gc_lock, write_gc_log
from uwf_git.store.store import open_store


@pytest.fixture
def uwf(uwf: Uwf) -> Uwf:
    """Return the program, on a store with a thread that has ended."""
    thread = uwf.begun()
    for _step in range(3):
        uwf("thread", "step", thread)
    return uwf


def test_before_and_after_are_reported(uwf: Uwf) -> None:
    told = uwf.json("gc")
    assert list(told) == ["packer", "before", "after", "swept"]
    assert told["packer"] == "git"
    # A pack for each transition, and one for the workflow.
    assert told["before"]["packs"] > 4
    assert told["after"]["looseObjects"] == told["swept"] == 0
    assert told["after"]["packs"] == 1
    assert told["after"]["bytes"] < told["before"]["bytes"]


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


def test_another_gc_is_exit_status_4_with_its_holder(uwf: Uwf) -> None:
    with hold_gc_lock(open_store(str(uwf.session.repo))):
        ran = uwf("gc")
    assert ran.status == 4
    assert f"another gc is at work on this store (pid {os.getpid()}, host " in ran.err


def test_why_the_last_one_failed_is_reported_once(uwf: Uwf) -> None:
    write_gc_log(open_store(str(uwf.session.repo)), "no space")
    assert uwf("gc").err == "the last packing in the background failed: no space\n"
    assert uwf("gc").err == ""


def test_store_that_is_not_due_is_not_packed(uwf: Uwf) -> None:
    assert uwf.json("gc", "--auto") == {"packed": False}
    assert uwf.json("gc")["before"]["packs"] > 1


def test_the_form_for_the_background_says_nothing(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "nice", asked.append)
    ran = uwf("gc", "--auto", "--detached")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert asked == [10]
    assert "--detached" not in uwf("gc", "--help").out
