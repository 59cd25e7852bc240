"""A stop server that hears of turns, with agents that are programs and notices of all kinds."""

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from commands.world import World

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.plan import StopWatch
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.model.names import ThreadId
from uwf_git.plan.phases import STOP_NOTICE, read_story
from uwf_git.plan.settings import DEFAULTS

GRAPH = """
name: reporting
roles:
  writer:
    outputSchema: {type: object, required: [text], properties: {text: {type: string}}}
    outputFile: report.json
    CHECKS
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: $END}
"""
LEAVES = """echo '{"text": "left"}' >report.json"""
STAYS = f"{LEAVES}; touch ready; exec sleep 60"
SAYS = """echo '{"meta": {"text": "said"}}'"""
WAITS = f"touch ready; until [ -e go ]; do sleep 0.01; done; {SAYS}"

AtTurn = Callable[[Turn], Any]


@pytest.fixture
def watch() -> Iterator[StopWatch]:
    with StopWatch(DEFAULTS._replace(stop_grace_ms=50), port=0) as watch:
        yield watch


def send(watch: StopWatch, content: bytes | dict[str, Any]) -> dict[str, Any]:
    """Send a notice, and return the answer."""
    if isinstance(content, dict):
        content = json.dumps(content).encode()
    with socket.create_connection((watch.where["address"], watch.where["port"]), 10) as sender:
        sender.sendall(content)
        sender.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: sender.recv(4096), b""))
    return dict(json.loads(answer))


def notice_of(turn: Turn, **other: Any) -> dict[str, Any]:
    head = turn.snapshot.record.node
    return {"type": "stop", "phase": "executing", "thread": turn.thread, "head": head} | other


def begin(world: World, agent: str, checks: str = "") -> ThreadId:
    return world.begun(GRAPH.replace("CHECKS", checks), world.program(agent))


def play(world: World, watch: StopWatch, at_turn: AtTurn, *, hook: str | None = None) -> Player:
    """Return a player that does *at_turn* when the agent is ready, and lets it go on then."""

    def play_told(turn: Turn) -> Played:
        def on_tick() -> None:
            if (world.place / "ready").exists() and not (world.place / "go").exists():
                at_turn(turn)
                (world.place / "go").touch()

        return agent_player(None, on_tick=on_tick)(turn)

    return watch.attend(play_told, lambda: "executing", hook)


def left_by(world: World, thread: ThreadId) -> tuple[Any, list[Any]]:
    """Return the meta of the step, and what its trace has."""
    snapshot = world.snapshot(thread)
    step = snapshot.get_head_node().payload
    assert snapshot.record.event == "step"
    trace = step.get("trace")
    return step["meta"], snapshot.get_node(trace["$ref"]).payload["events"] if trace else []


def test_program_that_stays_open_is_ended_and_its_report_is_the_answer(
    world: World, watch: StopWatch
) -> None:
    thread = begin(world, STAYS)
    sent: list[dict[str, Any]] = []

    def stop(turn: Turn) -> None:
        sent.append(notice_of(turn, timestamp="now", session="7"))
        assert [send(watch, sent[0]) for _ in range(2)] == [{"status": "ok"}] * 2

    world.step(thread, play(world, watch, stop))

    meta, trace = left_by(world, thread)
    assert meta == {"text": "left"}
    assert trace == [{"type": STOP_NOTICE, "notice": sent[0]}] * 2
    assert [each.notices for each in read_story(world.store, world.tip(thread))] == [0, 2]


@pytest.mark.parametrize("leaves", ["true", """echo '{"text": 1}' >report.json"""])
def test_without_a_report_that_fits_a_notice_does_nothing(
    world: World, watch: StopWatch, leaves: str
) -> None:
    thread = begin(world, f"{leaves}; {WAITS}")

    def play_past_the_grace(turn: Turn) -> Played:
        sent: list[dict[str, Any]] = []

        def on_tick() -> None:
            if not sent and (world.place / "ready").exists():
                sent.append(send(watch, notice_of(turn)))

        def may_end() -> bool:
            if is_over := turn.may_end():
                # The grace ended, and the agent is still there.
                (world.place / "go").touch()
            return is_over

        return agent_player(None, on_tick=on_tick)(turn._replace(may_end=may_end))

    world.step(thread, watch.attend(play_past_the_grace, lambda: "executing", None))

    meta, trace = left_by(world, thread)
    assert (meta, len(trace)) == ({"text": "said"}, 1)


def test_notice_of_another_turn_and_what_is_none_change_nothing(
    world: World, watch: StopWatch
) -> None:
    thread = begin(world, f"{LEAVES}; {WAITS}")
    answers: list[dict[str, Any]] = []

    def send_others(turn: Turn) -> None:
        others: tuple[bytes | dict[str, Any], ...] = (
            notice_of(turn, thread="01J00000000000000000000009"),
            notice_of(turn, head="0000000000000"),
            notice_of(turn, phase="planning"),
            notice_of(turn, type="end"),
            b"{broken",
            b"\xff\xfe{",
            b'{"type": "stop", "phase": "executing", "x": "' + b"x" * 70_000 + b'"}',
            b'{"x": ' + b"[" * 30 + b"]" * 30 + b"}",
            b"",
        )
        answers.extend(send(watch, each) for each in others)

    world.step(thread, play(world, watch, send_others))

    assert left_by(world, thread) == ({"text": "left"}, [])
    assert [each["status"] for each in answers] == ["ok"] * 3 + ["error"] * 6


def test_flood_of_notices_leaves_the_trace_to_the_agent(world: World, watch: StopWatch) -> None:
    thread = begin(world, f"""echo '{{"type": "mine"}}' >>"$UWF_TRACE"; {LEAVES}; {WAITS}""")

    def flood(turn: Turn) -> None:
        for _ in range(25):
            send(watch, notice_of(turn, padding="x" * 60_000))

    world.step(thread, play(world, watch, flood))

    _, trace = left_by(world, thread)
    assert trace[0] == {"type": "mine"}
    assert (len(trace), read_story(world.store, world.tip(thread))[-1].notices) == (21, 20)
    assert all(set(each["notice"]) == {"type", "phase", "thread", "head"} for each in trace[1:])


def test_notice_that_comes_between_turns_is_forgotten(world: World, watch: StopWatch) -> None:
    """The checks of an answer, and a turn that comes later, know nothing of it."""
    checks = "checks: [./check]"
    world.program("touch checked", name="check")
    thread = begin(world, f"{LEAVES}; {SAYS}", checks)
    turns: list[Turn] = []

    def play_late(turn: Turn) -> Played:
        turns.append(turn)
        if turn.answered is not None:
            assert send(watch, notice_of(turn)) == {"status": "ok"}
        return agent_player(None)(turn)

    world.step(thread, watch.attend(play_late, lambda: "executing", None))

    assert [turn.answered is None for turn in turns] == [True, False]
    assert not turns[0].may_end()
    assert left_by(world, thread) == ({"text": "left"}, [])
