from collections.abc import Callable, Iterator

import pytest
from commands.world import World

from uwf_git.commands.remote import reconcile as arrivals_module
from uwf_git.commands.remote.reconcile import MOST_FAILED, Arrival, judge_arrivals, judge_together
from uwf_git.commands.verify.history import Finding
from uwf_git.commands.verify.thread import check_thread
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.store import Store


@pytest.fixture
def arrivals(world: World) -> list[Arrival]:
    """Return threads with a step each, of which one is known at its start."""
    world.put()
    found = []
    for number in range(4):
        thread = world.start()
        start = world.tip(thread)
        world.step(thread)
        tip = world.tip(thread)
        found.append(Arrival(thread, start if number else None, tip, archived=False))
    return found


def test_one_that_is_wrong_is_found_among_the_others(
    world: World, arrivals: list[Arrival], thread_ids: Callable[[], ThreadId]
) -> None:
    other = Arrival(thread_ids(), None, arrivals[0].tip, archived=False)
    ended = arrivals[1]._replace(archived=True)
    unknown = arrivals[2]._replace(tip=Oid("0" * 40))
    for wrong in (other, ended, unknown):
        judged = judge_arrivals(world.store, [*arrivals, wrong])
        assert judged.passed == set(arrivals)
        assert list(judged.refused) == [wrong]
        alone = check_thread(
            world.store, wrong.thread, wrong.tip, archived=wrong.archived, known=wrong.known
        )
        assert list(alone)


BAD = Finding("bad", "mend it")


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Check in this process, and count: the number of items of each check."""
    counted: list[int] = []

    def first(_store: Store, check: Callable[[], Iterator[Finding]]) -> Finding | None:
        counted.append(1)
        return next(check(), None)

    monkeypatch.setattr(arrivals_module, "first_finding", first)
    return counted


def test_bad_items_without_end_are_not_looked_at_without_end(
    store: Store, checked: list[int]
) -> None:
    refused = judge_together(store, range(50_000), lambda _items: iter([BAD]))

    assert len(refused) == 50_000
    assert len(checked) == MOST_FAILED
    assert MOST_FAILED // 3 < list(refused.values()).count(BAD) < MOST_FAILED
