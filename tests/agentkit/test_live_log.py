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
