import sys
from pathlib import Path

import pytest

from uwf_git.agentkit.live_log import LiveLog


def test_output_is_repeated_as_it_comes(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    log = LiveLog()

    log.add(b"one\n")
    log.add(b"\xff\n")

    assert capfdbinary.readouterr().err == b"one\n\xff\n"


def test_flood_is_cut_with_one_note(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    log = LiveLog(5)

    for _ in range(3):
        log.add(b"1234")

    assert capfdbinary.readouterr().err == b"12341\n[the log ends here; the output goes on]\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_full_disk_costs_the_log_and_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        log = LiveLog()
        log.add(b"said")
        log.add(b"more")
