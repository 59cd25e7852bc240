import sys

import pytest
from refusing import refuses

from uwf_git.store.git.config import GitConfig
from uwf_git.store.objects.incoming_pack import PackLimits
from uwf_git.store.remotes.incoming import ReceiveLimits, read_fetch_limits, read_receive_limits


def limits(**values: str) -> ReceiveLimits:
    return read_receive_limits(
        GitConfig({f"uwf.{name.lower()}": [text] for name, text in values.items()})
    )


def test_without_settings_there_are_limits() -> None:
    assert limits() == (32 * 1024 * 1024, 600)


@pytest.mark.parametrize(
    ("text", "most"), [("1", 1), ("5k", 5 * 1024), ("2M", 2 * 1024**2), ("1g", 1024**3)]
)
def test_sizes_are_written_as_git_writes_them(text: str, most: int) -> None:
    assert limits(maxBlobSize=text).most_blob_bytes == most


def test_zero_is_no_limit() -> None:
    assert limits(maxBlobSize="0").most_blob_bytes == sys.maxsize
    assert limits(receiveTimeout="0").timeout_s == 24 * 3600


def test_no_push_takes_longer_than_a_day() -> None:
    assert limits(receiveTimeout="9g").timeout_s == 24 * 3600


@pytest.mark.parametrize("text", ["", "lots", "-1", "1.5m", "5 k", "5kb", "9" * 16, "\u0665"])
@pytest.mark.parametrize("name", ["maxBlobSize", "receiveTimeout"])
def test_value_that_is_not_a_number_is_an_error(name: str, text: str) -> None:
    with refuses("bad-receive-limit", match=rf"uwf\.{name} is "):
        limits(**{name: text})


def fetched(**values: str) -> PackLimits:
    return read_fetch_limits(
        GitConfig({f"uwf.{name.lower()}": [text] for name, text in values.items()})
    )


def test_fetch_has_limits_of_its_own() -> None:
    assert fetched() == PackLimits(32 * 1024 * 1024, 1_000_000, None, 100_000)
    assert fetched(maxBlobSize="1k", maxFetchSize="2g", maxFetchObjects="3") == PackLimits(
        1024, 3, 2 * 1024**3
    )
    names = ("maxBlobSize", "maxFetchSize", "maxFetchObjects", "maxFetchRefs")
    assert fetched(**dict.fromkeys(names, "0")) == PackLimits(*[sys.maxsize] * 4)
    # Whoever accepts more refs accepts a longer list of them.
    assert fetched(maxFetchRefs="5").most_talk_bytes == fetched().most_talk_bytes
    assert fetched(maxFetchRefs="1m").most_talk_bytes > 2 * fetched().most_talk_bytes


@pytest.mark.parametrize("name", ["maxFetchSize", "maxFetchObjects", "maxFetchRefs"])
def test_limit_of_a_fetch_that_is_not_a_number_is_an_error(name: str) -> None:
    with refuses("bad-receive-limit", match=rf"uwf\.{name} is 'lots'"):
        fetched(**{name: "lots"})
