from uwf_git.plan.notice import Notice, TurnAtWork
from uwf_git.plan.stop_grace import StopGrace

TURN = TurnAtWork("T", "H", "executing")
OF_THE_SEED = Notice("executing", None, None, {})
OF_THE_HOOK = Notice("executing", "T", "H", {})


class Clock:
    """A clock that stands still until it is moved."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_grace_begins_with_the_newest_notice() -> None:
    clock = Clock()
    grace = StopGrace(10, clock=clock)
    grace.begin(TURN)
    assert grace.find_left_s() is None

    assert grace.take(OF_THE_HOOK)
    clock.now_s += 4
    assert grace.find_left_s() == 6
    assert grace.take(OF_THE_SEED)
    assert grace.find_left_s() == 10
    clock.now_s += 99
    assert grace.find_left_s() == 0


def test_notice_of_another_turn_changes_nothing() -> None:
    grace = StopGrace(10, clock=Clock())
    grace.begin(TURN)
    others = (
        OF_THE_HOOK._replace(thread="S"),
        OF_THE_HOOK._replace(head="G"),
        OF_THE_SEED._replace(phase="planning"),
    )

    assert [grace.take(each) for each in others] == [False] * 3
    assert grace.find_left_s() is None


def test_next_turn_knows_of_no_notice() -> None:
    grace = StopGrace(10, clock=Clock())
    assert not grace.take(OF_THE_SEED)
    grace.begin(TURN)
    assert grace.take(OF_THE_HOOK)

    grace.begin(TURN._replace(head="H2"))

    assert grace.find_left_s() is None
    assert not grace.take(OF_THE_HOOK)
    grace.begin(None)
    assert not grace.take(OF_THE_SEED)


def test_no_grace_is_for_ever() -> None:
    grace = StopGrace(0)
    grace.begin(TURN)

    assert grace.take(OF_THE_HOOK)
    assert grace.find_left_s() is None
