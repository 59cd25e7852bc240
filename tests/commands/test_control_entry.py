from commands.world import World

from uwf_git.commands.control_entry import CONTROL_EVENTS, tell_control
from uwf_git.commands.step_view import Commands
from uwf_git.commands.thread_patch import patch_thread
from uwf_git.commands.thread_pause import pause_thread
from uwf_git.engine.markdown import Entry
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.node import build_node
from uwf_git.model.signal import build_signal
from uwf_git.model.thread import Amendment
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.record import Transition, record_next
from uwf_git.store.snapshot import Snapshot, read_snapshot

FACTS = ("today", "Ann")


def told(snapshot: Snapshot) -> Entry:
    return tell_control(snapshot, snapshot, Commands(snapshot), facts=FACTS)


def test_pause_is_told_with_its_reason(world: World) -> None:
    thread = world.begun()
    pause_thread(world.store, world.caller, thread, reason="Read the plan.\n\nAll of it.")

    assert told(world.snapshot(thread)) == Entry(
        "Paused", FACTS, {}, "Read the plan.\n\nAll of it."
    )


def test_patch_is_told_with_what_it_sets(world: World) -> None:
    thread = world.begun()
    patch_thread(world.store, world.caller, thread, {"draft": None, "n": 1})

    assert told(world.snapshot(thread)).meta == {"draft": None, "n": 1}


def test_change_of_the_rules_is_told_by_the_names_that_people_type(world: World) -> None:
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
    """Change all that can be changed of the rules of a thread."""
    snapshot = world.snapshot(thread)
    agent = build_node(AGENT_CONFIG, {"command": "uwf-claude --model opus"}, timestamp=0)
    limits = {"maxSteps": 5, "maxCost": None}
    amendment = Amendment(snapshot.record.workflow, {"writer": agent.hash}, limits)
    signal = build_signal("amend", timestamp=0, amendment=amendment)
    record = snapshot.record._replace(event="amend", signal=signal.hash)
    present = snapshot.get_present().after_amend(amendment)
    transition = Transition(record, "amended", present, (signal, agent))
    commit = record_next(world.store, snapshot, transition, world.caller.signing(world.store))
    return read_snapshot(world.store, commit)


def test_wait_is_told_of_the_role(world: World) -> None:
    thread = world.start("human", workflow=world.put().workflow)
    world.step(thread)

    assert told(world.snapshot(thread)) == Entry(
        "writer: waits for a person", FACTS, None, "Write."
    )


def test_every_control_has_its_words() -> None:
    assert {"pause", "resume", "retry", "patch", "amend", "poke", "wait"} == CONTROL_EVENTS
