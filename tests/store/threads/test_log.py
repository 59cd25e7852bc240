from pathlib import Path

from fresh_store import fresh_store
from store.story import THREAD

from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import forget_log, log_path


def test_log_lies_below_what_can_be_deleted(store: Store) -> None:
    assert log_path(store, THREAD) == f"{store.path}/uwf/logs/{THREAD}.log"


def test_log_is_forgotten_whether_it_is_there_or_not(store: Store) -> None:
    path = Path(log_path(store, THREAD))
    path.parent.mkdir(parents=True)
    path.write_text("x")

    for _ in range(2):
        forget_log(store, THREAD)
        assert not path.exists()
    forget_log(fresh_store(), THREAD)
