from uwf_git import TaskFilter
from uwf_git.commands.thread_list import ListRequest
from uwf_git.library.filter import ask_rows


def test_nothing_asks_for_all_that_have_not_ended() -> None:
    assert ask_rows(TaskFilter()) == ListRequest()


def test_every_wish_reaches_the_list() -> None:
    wanted = TaskFilter(
        ended=True, workflow="a", statuses=["ready"], after=1, before=2, offset=3, limit=4
    )

    assert ask_rows(wanted) == ListRequest(
        archived=True,
        workflow="a",
        statuses=frozenset({"ready"}),
        after_ms=1,
        before_ms=2,
        offset=3,
        limit=4,
    )
