import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from commands.world import DEMO, World, content_player, fails, says

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.drive_thread import Driven, DriveRequest, Watcher, drive_thread
from uwf_git.commands.step.record_turn import TurnInterrupted
from uwf_git.commands.step.step_thread import StepRequest
from uwf_git.commands.turn.branches import ThreadNotReady
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.turn import Played, Player, StepFiles, ThreadResult, Turn
from uwf_git.errors import UwfError
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import Waiting
from uwf_git.store.git.config import set_config
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.local_files import ThreadBusy, find_driver, lock_thread


class Drives:
    """Drives threads of a world, and keeps the reports."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.steps: list[ThreadResult] = []
        self.retries: list[float] = []
        self.waits: list[Waiting] = []
        self.slept: list[float] = []
        self.while_asleep: Callable[[], Any] = lambda: None

    def __call__(self, thread: str, play: Player = content_player, **asked: Any) -> Driven:
        self.steps.clear()
        watcher = Watcher(
            self.steps.append,
            lambda _failure, seconds: self.retries.append(seconds),
            lambda _thread, waiting: self.waits.append(waiting),
        )
        step = StepRequest(thread, play, asked.pop("choice", Choice()))
        request = DriveRequest(step, sleep=self.sleep, **asked)
        return drive_thread(self.world.store, self.world.caller, request, watcher=watcher)

    def sleep(self, seconds: float) -> None:
        """Be the clock's sleep."""
        assert len(self.slept) < 10_000
        self.slept.append(seconds)
        self.while_asleep()

    @property
    def roles(self) -> list[str | None]:
        """List the roles of the steps."""
        return [each.role for each in self.steps]


@pytest.fixture
def drive(world: World) -> Drives:
    return Drives(world)


def allow_retries(world: World, retries: int, backoff: str = "1") -> None:
    set_config(f"{world.store.path}/config", "uwf.retries", str(retries))
    world.configure("uwf.backoff", backoff)


def in_turn(*players: Player) -> Player:
    """Return a player that plays one attempt by each player, the rest by the last."""
    left = list(players)

    def play(turn: Turn) -> Played:
        return (left.pop(0) if len(left) > 1 else left[0])(turn)

    return play


def limited(until: int) -> Player:
    """Make a player that hits a limit which ends then."""
    return fails("usage limit", kind="usage-limit", left=StepFiles(reset_at=until))


def test_failure_ends_the_drive_and_keeps_the_steps_before_it(world: World, drive: Drives) -> None:
    thread = world.begun()

    driven = drive(thread, in_turn(says({"text": "x"}), fails("no key")))

    assert (driven.stopped, driven.steps, driven.last.role) == ("failed", 1, "checker")
    assert driven.last.status == "failed"
    assert driven.failure is not None
    assert driven.failure.message == "checker failed (nobody): no key"
    assert world.snapshot(thread).record.depth == 1
    with pytest.raises(ThreadNotReady, match="has failed"):
        drive(thread)


def test_failure_is_tried_again_after_a_wait_that_grows(world: World, drive: Drives) -> None:
    allow_retries(world, 2, backoff="0.5")

    driven = drive(world.begun(), in_turn(fails(), fails(), content_player))

    assert (driven.stopped, driven.steps) == ("end", 2)
    assert drive.retries == [0.5, 1.0]
    assert sum(drive.slept) == pytest.approx(1.5)
    assert max(drive.slept) <= 0.2


def test_pause_is_heard_while_a_retry_is_waited_for(world: World, drive: Drives) -> None:
    allow_retries(world, 3, backoff="100")
    thread = world.begun()
    drive.while_asleep = lambda: world.pause(thread, reason="lunch")

    driven = drive(thread, fails())

    assert (driven.stopped, driven.last.status, len(drive.slept)) == ("paused", "paused", 1)
    assert drive.slept[0] <= 1


def test_interrupt_during_a_wait_leaves_the_thread_ready(world: World, drive: Drives) -> None:
    allow_retries(world, 1)
    thread = world.begun()
    drive.while_asleep = lambda: signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        drive(thread, fails())

    assert world.snapshot(thread).record.status == "ready"
    assert find_driver(world.store, thread) is None


def test_interrupt_that_leaves_an_answer_says_so(thread: ThreadId, drive: Drives) -> None:
    with pytest.raises(TurnInterrupted) as caught:
        drive(thread, fails("it was interrupted", kind="interrupted", is_kept=True))

    assert caught.value.hint == f"its answer is kept: `uwf thread run {thread}` goes on"


@pytest.mark.parametrize("max_steps", [None, 1])
def test_agent_that_a_pause_stops_ends_the_drive_as_paused(
    max_steps: int | None, world: World, thread: ThreadId, drive: Drives
) -> None:
    def play(_turn: Turn) -> Played:
        world.pause(thread, reason="lunch")
        return fails("it was stopped: lunch", kind="interrupted", is_stopped=True)(_turn)

    driven = drive(thread, play, max_steps=max_steps)

    assert (driven.stopped, driven.last.status, driven.steps) == ("paused", "paused", 0)
    assert driven.steered is not None
    assert driven.steered.reason == "lunch"


def test_failure_of_a_paused_thread_ends_the_drive_as_paused(world: World, drive: Drives) -> None:
    allow_retries(world, 1)
    thread = world.begun()

    def play(turn: Turn) -> Played:
        world.pause(thread)
        return fails()(turn)

    assert drive(thread, play).stopped == "paused"
    assert drive.retries == []


@pytest.mark.parametrize(("retries", "tries"), [(0, 2), (3, 4)])
def test_agent_that_is_stopped_again_and_again_ends_the_drive(
    retries: int, tries: int, world: World, drive: Drives
) -> None:
    allow_retries(world, retries)
    thread = world.begun()

    driven = drive(thread, fails("it was stopped", kind="interrupted", is_stopped=True))

    assert (driven.stopped, driven.last.status, driven.steps) == ("failed", "ready", 0)
    assert world.snapshot(thread).get_present().attempts == tries
    assert drive(thread).stopped == "end"


def test_turns_that_are_stopped_count_as_steps_of_the_drive(world: World, drive: Drives) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Played:
        world.pause(thread)
        world.resume(thread)
        return fails("it was stopped", kind="interrupted", is_stopped=True)(turn)

    driven = drive(thread, in_turn(content_player, play), max_steps=2)

    assert (driven.stopped, driven.steps) == ("max-steps", 1)
    assert world.snapshot(thread).get_present().attempts == 1


def test_try_that_was_lost_with_its_machine_is_made_again_but_not_for_ever(
    world: World, drive: Drives
) -> None:
    lost = fails("it was killed", kind="lost")

    assert drive(world.begun(), in_turn(lost, content_player)).stopped == "end"
    driven = drive(world.start(), lost)

    assert (driven.stopped, driven.last.status) == ("failed", "ready")
    assert drive(driven.last.thread).stopped == "end"


def test_turn_of_a_person_ends_the_drive(world: World, drive: Drives) -> None:
    thread = world.begun(DEMO, "writer=nobody", "checker=human")

    driven = drive(thread, choice=Choice(("mine",)))

    assert (driven.stopped, driven.steps) == ("waiting", 1)
    assert (driven.last.status, driven.waiting) == ("waiting", Waiting("checker"))
    with pytest.raises(ThreadNotReady, match="waits for a person"):
        drive(thread, wait=True)


def test_limit_of_an_agent_ends_the_drive(world: World, drive: Drives) -> None:
    until = world.caller.now_ms() + 3_600_000

    driven = drive(world.begun(), limited(until))

    assert (driven.stopped, driven.last.status) == ("waiting", "waiting")
    assert driven.waiting == Waiting("writer", until)
    assert drive.slept == []


def test_limit_without_an_end_is_waited_for_longer_and_longer(world: World, drive: Drives) -> None:
    hit, began = fails("no more", kind="rate-limit"), world.caller.now_ms()

    stopped = drive(world.begun(), hit)
    driven = drive(world.begun(), in_turn(hit, hit, content_player), wait=True)

    assert (stopped.stopped, driven.stopped) == ("failed", "end")
    assert "--wait" in str(stopped.failure and stopped.failure.hint)
    assert [round(((each.until or 0) - began) / 60_000) for each in drive.waits] == [1, 3]


def test_pause_ends_a_wait_for_a_limit(world: World, drive: Drives) -> None:
    thread = drive(world.begun(), limited(world.caller.now_ms() + 10**12)).last.thread
    drive.while_asleep = lambda: world.pause(thread)

    assert drive(thread, wait=True).stopped == "paused"


def test_no_other_process_drives_or_steps_between_steps(world: World, drive: Drives) -> None:
    # Seen elsewhere: a thread between two steps looked idle, and was run twice.
    allow_retries(world, 1)
    thread = world.begun()
    refused: list[UwfError] = []

    def meddle() -> None:
        for attempt in (lambda: world.step(thread), lambda: Drives(world)(thread)):
            with pytest.raises(ThreadBusy) as caught:
                attempt()
            refused.append(caught.value)

    drive.while_asleep = meddle

    assert drive(thread, in_turn(fails(), content_player)).stopped == "end"
    assert {error.facts["holder"]["pid"] for error in refused} == {os.getpid()}


def test_lock_held_for_ever_is_not_waited_for(
    world: World, drive: Drives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uwf_git.commands.drive_thread._MOST_COLLISIONS", 2)
    thread = world.begun()

    with lock_thread(world.store, thread, since_ms=0), pytest.raises(ThreadBusy):
        drive(thread)

    assert len(drive.slept) == 2


def test_drive_that_meets_an_end_from_elsewhere_stops(world: World, drive: Drives) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Played:
        # As a plain `git push` does it, without a lock.
        head = get_head(world.store, thread)
        assert world.store.refs.move(
            f"refs/threads/{thread}",
            seen=head.commit,
            to_name=f"refs/archive/{thread}",
            to=head.commit,
        )
        return fails()(turn)

    driven = drive(thread, play)

    assert (driven.stopped, driven.steps) == ("killed", 0)


def test_masked_player_is_the_one_that_drives(world: World, drive: Drives) -> None:
    heard: list[bytes] = []
    agent = world.program('echo "$MY_API_KEY" >&2; echo \'{"meta": {"text": "x", "ok": true}}\'')
    environ = {**world.caller.environ, "MY_API_KEY": "sk-0123456789"}
    world.caller = world.caller._replace(environ=environ)

    drive(world.begun(DEMO, agent), agent_player(heard.append), max_steps=1)

    assert b"".join(heard) == b"[masked]\n"
