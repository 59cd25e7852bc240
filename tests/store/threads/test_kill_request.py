from fresh_store import fresh_store

from uwf_git.model.names import ThreadId
from uwf_git.store.threads.lock import (
    find_kill_request,
    forget_kill_request,
    write_kill_request,
)

THREAD = ThreadId("01J00000000000000000000001")
OTHER = ThreadId("01J00000000000000000000002")


def test_request_is_found_as_it_was_written_until_it_is_forgotten() -> None:
    store = fresh_store()
    assert find_kill_request(store, THREAD) is None

    for reason in ("", "of no use\r\n\n  é "):
        write_kill_request(store, THREAD, reason)
        assert find_kill_request(store, THREAD) == reason
        assert find_kill_request(store, OTHER) is None

    forget_kill_request(store, THREAD)
    forget_kill_request(store, THREAD)
    assert find_kill_request(store, THREAD) is None
