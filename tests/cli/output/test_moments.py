import time

import pytest

from uwf_git.cli.output.screen import tell_local, tell_moment, tell_seconds, tell_when

NOW = 1_763_822_000_000  # 2025-11-22 14:33:20 UTC
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("ago_ms", "told"),
    [
        (0, "0 s"),
        (-5_000, "0 s"),
        (43_999, "43 s"),
        (24 * 60_000, "24 min"),
        (3 * HOUR, "3 h"),
        (13 * HOUR, "01:33"),
        (24 * HOUR, "yesterday 14:33"),
        (19 * 24 * HOUR, "3 Nov 14:33"),
        (400 * 24 * HOUR, "2024-10-18"),
        (-30 * 24 * HOUR, "2025-12-22"),
    ],
)
def test_time_is_told_as_people_tell_it(ago_ms: int, told: str) -> None:
    assert tell_when(NOW - ago_ms, NOW) == told


def test_times_are_those_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-09:00")
    time.tzset()
    try:
        assert tell_local(NOW) == "2025-11-22 23:33:20"
        assert tell_when(NOW - 24 * HOUR, NOW) == "yesterday 23:33"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_time_beyond_the_calendar_is_a_number() -> None:
    for tell in (lambda ms: tell_when(ms, NOW), tell_local):
        assert tell(10**18) == "1000000000000000000 ms after 1970"


def test_moment_of_today_says_how_long_ago() -> None:
    assert tell_moment(NOW - 60_000, NOW) == "2025-11-22 14:32:20, 1 min ago"
    assert tell_moment(NOW - 24 * HOUR, NOW) == "2025-11-21 14:33:20"


@pytest.mark.parametrize(
    ("seconds", "told"), [(59, "59 s"), (60, "1 min"), (7200, "2 h"), (172_800, "2 d")]
)
def test_duration_is_told_in_its_largest_unit(seconds: int, told: str) -> None:
    assert tell_seconds(seconds) == told
