from datetime import UTC, datetime

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.output.screen import MOMENT, Moment

NOW_MS = 1_800_000_000_000
DAY_MS = 24 * 3600 * 1000


def read(text: str) -> Moment:
    return MOMENT.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "ago_ms"),
    [
        ("0s", 0),
        ("30m", 30 * 60_000),
        ("12h", DAY_MS // 2),
        ("7d", 7 * DAY_MS),
        (" 2w ", 14 * DAY_MS),
    ],
)
def test_span_is_counted_back_from_now(text: str, ago_ms: int) -> None:
    assert read(text).at(NOW_MS) == NOW_MS - ago_ms


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2026-11-01", "2026-11-01T00:00:00+00:00"),
        ("2026-11-01T12:30", "2026-11-01T12:30:00+00:00"),
        ("2026-11-01 12:30:15", "2026-11-01T12:30:15+00:00"),
        ("2026-11-01T12:30Z", "2026-11-01T12:30:00+00:00"),
        ("2026-11-01T12:30+02:00", "2026-11-01T10:30:00+00:00"),
    ],
)
def test_time_is_in_utc_unless_it_says_otherwise(text: str, told: str) -> None:
    moment = datetime.fromtimestamp(read(text).at(NOW_MS) / 1000, tz=UTC)
    assert moment.isoformat() == told


@pytest.mark.parametrize(
    "text",
    ["", "7", "d", "-7d", "1.5d", "7x", "7D", "7d3h", "yesterday", "2026", "20261101", "2026-13-01",
     "2026-02-30", "2026-11-01T25:00", "2026-11-01x", "01/11/2026", "\u0667d", "9" * 400 + "d"],
)  # fmt: skip
def test_invalid_time_is_reported_with_valid_forms(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is no time: type how long ago \(30m"):
        read(text)


def test_nothing_was_before_1970() -> None:
    assert read("999999999w").at(NOW_MS) == 0
    assert read("0001-01-01").at(NOW_MS) == 0


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001 (hypothesis wants them so)
def test_every_iso_time_is_read(time: datetime) -> None:
    known = time.replace(tzinfo=UTC)
    assert abs(read(time.isoformat()).at(NOW_MS) - known.timestamp() * 1000) <= 1


def test_value_that_was_read_is_taken_as_it_is() -> None:
    assert MOMENT.convert(read("7d"), None, None) == read("7d")
