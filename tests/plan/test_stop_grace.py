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
    assert not grace.is_over()

    assert grace.take(OF_THE_HOOK)
    clock.now_s += 9
    assert not grace.is_over()
    assert grace.take(OF_THE_SEED)
    clock.now_s += 9
    assert not grace.is_over()
    clock.now_s += 1
    assert grace.is_over()


def test_end_of_a_grace_is_told_once() -> None:
    clock = Clock()
    grace = StopGrace(10, clock=clock)
    grace.begin(TURN)
    for _ in range(2):
        assert grace.take(OF_THE_HOOK)
        clock.now_s += 99
        # Without a report the program goes on, and its next stop counts again.
        assert [grace.is_over(), grace.is_over()] == [True, False]


def test_notice_of_another_turn_changes_nothing() -> None:
    clock = Clock()
    grace = StopGrace(10, clock=clock)
    grace.begin(TURN)
    others = (
        OF_THE_HOOK._replace(thread="S"),
        OF_THE_HOOK._replace(head="G"),
        OF_THE_SEED._replace(phase="planning"),
    )

    assert [grace.take(each) for each in others] == [False] * 3
    clock.now_s += 99
    assert not grace.is_over()


def test_next_turn_knows_of_no_notice() -> None:
    clock = Clock()
    grace = StopGrace(10, clock=clock)
    assert not grace.take(OF_THE_SEED)
    grace.begin(TURN)
    assert grace.take(OF_THE_HOOK)

    grace.begin(TURN._replace(head="H2"))

    clock.now_s += 99
    assert not grace.is_over()
    assert not grace.take(OF_THE_HOOK)
    grace.begin(None)
    assert not grace.take(OF_THE_SEED)


def test_turn_that_is_taken_up_again_has_its_grace() -> None:
    clock = Clock()
    grace = StopGrace(10, clock=clock)
    grace.begin(TURN, has_stopped=True)
    assert not grace.is_over()
    clock.now_s += 10
    assert grace.is_over()


def test_no_grace_is_for_ever() -> None:
    clock = Clock()
    grace = StopGrace(0, clock=clock)
    grace.begin(TURN)

    assert grace.take(OF_THE_HOOK)
    clock.now_s += 99
    assert not grace.is_over()
