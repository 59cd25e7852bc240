from typing import Any

from commands.world import World

from uwf_git.commands.control.steer import patch_thread
from uwf_git.commands.inspect.story import StoryReader, Telling
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.event_folds import Cause
from uwf_git.model.names import ThreadId
from uwf_git.model.node import build_node
from uwf_git.model.thread import Amendment, build_signal
from uwf_git.store.threads.record import build_next, read_standing, record_next
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

Told = tuple[str, Any, str]


def told(world: World, snapshot: Snapshot) -> Told:
    """Return the title, the changes and the note of the newest entry."""
    reader = StoryReader(world.store, Telling(is_whole=True))
    *_, entry = reader.walk(snapshot.record.thread, snapshot.commit.oid)
    note = entry["note"]
    return entry["title"], entry["changes"], "" if note is None else note["text"]


def test_patch_shows_its_values(world: World) -> None:
    thread = world.begun()
    patch_thread(world.store, world.caller, thread, {"draft": None, "n": 1})

    assert told(world, world.snapshot(thread))[1] == {"draft": None, "n": 1}


def test_amend_shows_the_names_that_people_type(world: World) -> None:
    snapshot = amended(world, world.begun())

    title, changes, _ = told(world, snapshot)

    assert title == "Rules changed"
    assert changes == {
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
