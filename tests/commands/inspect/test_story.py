"""Excerpts: keys masked, also at the cut; and git prints the whole."""

from typing import Any

from commands.world import World, says
from web.stories import KEY, SECRET

from uwf_git.commands.inspect.story import (
    ASIDE_BYTES,
    CONTENT_BYTES,
    StoryReader,
    Telling,
    cut_text,
    excerpt_json,
    make_mask,
)
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.event_folds import Cause
from uwf_git.model.names import ThreadId
from uwf_git.model.node import build_node
from uwf_git.model.thread import Amendment, build_signal
from uwf_git.store.threads.history import (
    Snapshot,
    build_next,
    read_snapshot,
    read_standing,
    record_next,
)

Told = tuple[str, Any, str]


def told(world: World, snapshot: Snapshot) -> Told:
    """Return the title, the changes and the note of the newest entry."""
    reader = StoryReader(world.store, Telling(is_whole=True))
    *_, entry = reader.walk(snapshot.record.thread, snapshot.commit.oid)
    note = entry["note"]
    return entry["title"], entry["changes"], "" if note is None else note["text"]


def test_patch_shows_its_values(world: World) -> None:
    thread = world.begun()
    world.patch(thread, {"draft": None, "n": 1})

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


MASK = make_mask({"DEPLOY_PASSWORD": SECRET})


def plain(text: str) -> str:
    return text


def test_a_text_is_cut_between_characters() -> None:
    whole = {"text": "äöü", "bytes": 6, "isCut": False, "command": "git x"}
    assert cut_text("äöü", plain, "git x", most=6) == whole
    cut = cut_text("äöü", plain, "git x", most=5)
    assert cut == {"text": "äö", "bytes": 6, "isCut": True, "command": "git x"}


def test_no_part_of_a_key_is_left_at_the_cut() -> None:
    for before in range(8_150, 8_200):
        text = "a " * (before // 2) + KEY + " b" * 20_000
        shown = cut_text(text, MASK, "git x", most=ASIDE_BYTES)["text"]
        assert KEY[:6] not in shown
    many = (KEY + " ") * 2_000
    assert KEY[:6] not in cut_text(many, MASK, "git x", most=ASIDE_BYTES)["text"]


def test_a_long_value_is_cut_as_its_text(world: World) -> None:
    thread = world.begun()
    world.step(thread, says({"text": "x" * 70_000, KEY: SECRET}))
    snapshot = world.snapshot(thread)
    step = snapshot.get_head_node()

    cut = excerpt_json(snapshot, step, step.payload["meta"], MASK)

    assert cut["isCut"]
    assert len(cut["text"]) <= CONTENT_BYTES
    assert excerpt_json(snapshot, step, {KEY: 1}, MASK) == {"value": {"[masked]": 1}}
