from commands.world import World

from uwf_git.commands.control.steer import patch_thread
from uwf_git.commands.control.stop import pause_thread
from uwf_git.commands.inspect.read import CONTROL_EVENTS, describe_control
from uwf_git.commands.inspect.step_view import Commands
from uwf_git.engine.markdown import ThreadEntry
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.event_folds import Cause
from uwf_git.model.names import ThreadId
from uwf_git.model.node import build_node
from uwf_git.model.thread import Amendment, build_signal
from uwf_git.store.threads.record import build_next, read_standing, record_next
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

FACTS = ("today", "Ann")


def told(snapshot: Snapshot) -> ThreadEntry:
    return describe_control(snapshot, snapshot, Commands(snapshot), facts=FACTS)


def test_pause_shows_its_reason(world: World) -> None:
    thread = world.begun()
    pause_thread(world.store, world.caller, thread, reason="Read the plan.\n\nAll of it.")

    assert told(world.snapshot(thread)) == ThreadEntry(
        "Paused", FACTS, {}, "Read the plan.\n\nAll of it."
    )


def test_patch_shows_its_values(world: World) -> None:
    thread = world.begun()
    patch_thread(world.store, world.caller, thread, {"draft": None, "n": 1})

    assert told(world.snapshot(thread)).meta == {"draft": None, "n": 1}


def test_amend_shows_the_names_that_people_type(world: World) -> None:
    snapshot = amended(world, world.begun())

    entry = told(snapshot)

    assert entry.title == "Rules changed"
    assert entry.meta == {
        "workflow": f"demo {snapshot.record.workflow}",
        "agent of writer": "uwf-claude --model opus",
        "maxSteps": "5",
        "maxCost": "no limit",
    }


def amended(world: World, thread: ThreadId) -> Snapshot:
    """Amend all rules of a thread."""
    snapshot = world.snapshot(thread)
    agent = build_node(AGENT_CONFIG, {"command": "uwf-claude --model opus"}, timestamp=0)
    limits = {"maxSteps": 5, "maxCost": None}
    amendment = Amendment(snapshot.record.workflow, {"writer": agent.hash}, limits)
    signal = build_signal("amend", timestamp=0, amendment=amendment)
    before, nodes = read_standing(snapshot), (signal, agent)
    transition = build_next(before, "amend", Cause(signal), nodes=nodes)
    commit = record_next(world.store, snapshot, transition, world.caller.signing(world.store))
    return read_snapshot(world.store, commit)


def test_wait_shows_the_role(world: World) -> None:
    thread = world.start("human", workflow=world.put().workflow)
    world.step(thread)

    assert told(world.snapshot(thread)) == ThreadEntry(
        "writer: waits for a person", FACTS, None, "Write."
    )


def test_every_control_has_its_words() -> None:
    assert {"pause", "resume", "retry", "patch", "amend", "poke", "wait"} == CONTROL_EVENTS
