import time
from pathlib import Path

import pytest

from uwf_git.store.gc.packing import Due, find_due, find_expiry, is_detached, read_gc_limits
from uwf_git.store.git.config import GitConfig
from uwf_git.store.store import Store

DAY_S = 24 * 3600


def config(**values: str) -> GitConfig:
    return GitConfig({f"gc.{name.lower()}": [value] for name, value in values.items()})


def with_objects(store: Store, count: int, *, folder: str = "17") -> None:
    place = Path(store.path, "objects", folder)
    place.mkdir(exist_ok=True)
    for number in range(count):
        (place / f"{number:038x}").touch()


def test_a_new_store_is_not_due(store: Store) -> None:
    assert not find_due(store)


@pytest.mark.parametrize(("count", "is_due"), [(27, False), (28, True)])
def test_loose_objects_are_estimated_from_one_folder(
    store: Store, count: int, *, is_due: bool
) -> None:
    """27 * 256 is more than 6700, but git rounds its threshold up, and wants more than that."""
    with_objects(store, count)
    with_objects(store, 99, folder="18")
    assert find_due(store) == Due(objects=is_due, refs=False)


@pytest.mark.parametrize("count", [1, 3])
def test_only_the_names_of_objects_count(store: Store, count: int) -> None:
    limited = store._replace(config=config(auto="512"))
    with_objects(store, count)
    Path(store.path, "objects", "17", "tmp_obj_x").touch()
    assert find_due(limited).objects is (count > 2)


def test_many_packs_are_due_unless_they_are_kept(store: Store) -> None:
    limited = store._replace(config=config(autoPackLimit="2"))
    for number in range(4):
        for suffix in ("pack", "idx"):
            Path(store.path, "objects", "pack", f"pack-{number}.{suffix}").touch()
    assert find_due(limited).objects
    assert not find_due(store)
    for number in range(2):
        Path(store.path, "objects", "pack", f"pack-{number}.keep").touch()
    assert not find_due(limited)


def test_thousands_of_loose_refs_are_due(store: Store) -> None:
    archive = Path(store.path, "refs", "archive")
    archive.mkdir(parents=True)
    for number in range(1001):
        (archive / str(number)).touch()
    assert find_due(store) == Due(objects=False, refs=True)


@pytest.mark.parametrize("never", ["0", "-1"])
def test_never_is_never(store: Store, never: str) -> None:
    with_objects(store, 100)
    assert not find_due(store._replace(config=config(auto=never)))


@pytest.mark.parametrize(
    ("told", "loose"),
    [("100", 100), (" 2k", 2048), ("1M", 2**20), ("-5", 0), ("many", 6700), ("", 6700)],
)
def test_numbers_are_read_as_git_does(told: str, loose: int) -> None:
    assert read_gc_limits(config(auto=told)) == (loose, 50)


def test_packing_is_done_in_the_background_unless_git_config_says_no() -> None:
    assert is_detached(config())
    assert not is_detached(config(autoDetach="false"))


@pytest.mark.parametrize(
    ("told", "days"),
    [("", 14), ("2.weeks.ago", 14), ("90.days.ago", 90), ("nonsense", 14), ("1.day.ago", 1)],
)
def test_what_no_ref_needs_is_kept_for_a_while(told: str, days: int) -> None:
    expiry = find_expiry(config(pruneExpire=told))
    assert expiry is not None
    assert abs(time.time() - days * DAY_S - expiry) < 2


@pytest.mark.parametrize("told", ["now", "1.second.ago", "all", "5.minutes.ago"])
def test_what_a_step_has_just_written_is_never_old_enough(told: str) -> None:
    expiry = find_expiry(config(pruneExpire=told))
    assert expiry is not None
    assert expiry <= time.time() - DAY_S


@pytest.mark.parametrize("told", ["never", "Never", "false"])
def test_unneeded_objects_may_stay_for_ever(told: str) -> None:
    assert find_expiry(config(pruneExpire=told)) is None
