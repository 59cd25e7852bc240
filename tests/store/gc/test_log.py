import os
from pathlib import Path

from uwf_git.store.gc.packing import has_failed_lately, take_gc_log, write_gc_log
from uwf_git.store.store import Store


def test_failure_is_reported_once(store: Store) -> None:
    write_gc_log(store, "git gc failed: no space\udc80")
    assert take_gc_log(store) == "git gc failed: no space\\udc80"
    assert take_gc_log(store) is None


def test_for_a_day_nothing_begins_by_itself(store: Store) -> None:
    assert not has_failed_lately(store)
    write_gc_log(store, "why")
    assert has_failed_lately(store)
    # Long ago, and by a clock that was set back since.
    for time_s in (1_000_000_000, 16_000_000_000):
        os.utime(Path(store.local_path("gc.log")), (time_s, time_s))
        assert not has_failed_lately(store)
    assert take_gc_log(store) == "why"


def test_an_empty_log_tells_nothing(store: Store) -> None:
    write_gc_log(store, "")
    assert take_gc_log(store) is None
