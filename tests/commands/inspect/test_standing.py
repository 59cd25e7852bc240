import pytest

from uwf_git.commands.agent_run.activity import RUNNING
from uwf_git.commands.inspect.list import (
    DAMAGED,
    UNREADABLE,
    Group,
    group_active,
    order_statuses,
    sort_counts,
    tell_standing,
)


def test_what_needs_somebody_comes_first_unless_another_group_is_asked_for() -> None:
    assert order_statuses()[:4] == ("waiting", "failed", DAMAGED, UNREADABLE)
    assert order_statuses("running")[:2] == (RUNNING, "waiting")


@pytest.mark.parametrize(
    ("statuses", "group"),
    [
        (("split", "running", "failed"), "needs"),
        (("split", "running", "ready"), "running"),
        (("split", "completed"), "others"),
        ((), "others"),
    ],
)
def test_a_thread_is_in_the_first_group_of_its_branches(
    statuses: tuple[str, ...], group: Group
) -> None:
    assert group_active(statuses) == group


def test_counts_begin_with_what_needs_somebody() -> None:
    counts = sort_counts({"completed": 9, "later": 1, "ready": 2, "failed": 1})

    assert list(counts.items()) == [("failed", 1), ("ready", 2), ("completed", 9), ("later", 1)]


def test_a_thread_that_has_split_stands_as_its_branches() -> None:
    row = {"status": "split", "branches": {"ready": 1, "running": 1}}

    assert tell_standing(row, order_statuses()) == "running"
    assert tell_standing({"status": "split"}, order_statuses()) == "split"
    assert (
        tell_standing({"status": "ready", "branches": {"failed": 1}}, order_statuses()) == "ready"
    )
