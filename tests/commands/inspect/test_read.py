"""How often a step failed before it succeeded, as its thread's commits tell."""

import re
from pathlib import Path
from typing import Any

import pytest
from commands import turns
from commands.inspect.test_context import NESTED, Golden
from commands.step.test_record_turn import CHECKS, drive
from commands.step.test_step_thread import begun as begin_nested
from commands.turns import script
from commands.world import Git, World, fails, read_thread, says
from store.small_packs import loosen, lose
from web.stories import KEY, SECRET

from uwf_git.commands.inspect.read import SearchRequest, diff_threads, render_thread, search_threads
from uwf_git.commands.inspect.show import count_failed_by_role, show_thread
from uwf_git.commands.inspect.story import (
    ASIDE_BYTES,
    CONTENT_BYTES,
    StoryReader,
    Telling,
    count_failed,
    cut_text,
    excerpt_json,
    make_mask,
)
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.event_folds import Cause
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import build_node
from uwf_git.model.thread import Amendment, build_signal
from uwf_git.store.objects.objects import get_tree
from uwf_git.store.threads.history import (
    Snapshot,
    build_next,
    read_snapshot,
    read_standing,
    record_next,
    walk_history,
)

HOSTILE = "# Broken out\n\n## 9. forged: x\n\n```\n<!--\n\nTitle\n===\n"


def test_thread_is_shown_from_task_to_end(world: World, golden: Golden) -> None:
    thread = world.begun()
    world.step(thread, says({"text": "a poem"}, "# A poem\n\nRoses.\n"), command="uwf-poet --fast")
    world.fail(thread, fails("no key", stdout=b"half", stderr=b"KeyError\n"))
    world.retry(thread, hint="The key is in `.env`.")
    world.step(thread, says({"ok": True}, '{"meta": {"ok": true}}\n'))
    world.step(thread)

    golden("commands/read.md", read_thread(world.store, thread))


def test_hostile_text_stays_where_it_was_said(world: World) -> None:
    thread = world.start(workflow=world.put().workflow, prompt=HOSTILE)
    world.step(thread, says({"text": HOSTILE, HOSTILE: [HOSTILE]}, HOSTILE))
    world.fail(thread, fails(HOSTILE, stdout=HOSTILE.encode(), stderr=HOSTILE.encode()))
    world.retry(thread, hint=HOSTILE)
    world.pause(thread, reason=HOSTILE)
    world.patch(thread, {HOSTILE: HOSTILE}, reason=HOSTILE)
    world.resume(thread, reason=HOSTILE)
    world.step(thread, says({"ok": True}, HOSTILE.replace("\n", "\r")))
    world.kill(thread, reason=HOSTILE)

    told = read_thread(world.store, thread)

    headings = []
    fence = ""
    for line in told.splitlines():
        if not fence and line.startswith(("# ", "## ")):
            headings.append(line)
        if line.startswith("```"):
            fence = "" if line == fence else fence or line.removesuffix("text")
    assert not fence
    assert headings == [
        "# Broken out",
        "## 1. writer: Broken out",
        "## checker: attempt 1 failed",
        "## To be tried again",
        "## Paused",
        "## State changed by hand",
        "## Resumed",
        "## 2. checker: Broken out",
        "## Killed after 2 steps",
    ]


def spoil(world: World, oid: str) -> None:
    """Replace a loose object."""
    loosen(world.store)
    path = f"{world.store.path}/objects/{oid[:2]}/{oid[2:]}"
    with open(f"{path}.new", "wb") as file:
        file.write(b"garbage")
    world.place.joinpath(f"{path}.new").rename(path)
    world.reopen()


def test_damaged_history_is_raised(world: World) -> None:
    thread = world.begun()
    start = world.tip(thread)
    world.step(thread)
    spoil(world, start)

    with pytest.raises(StoreDamaged, match=start):
        next(iter(render_thread(world.store, thread)))


def test_events_before_last_are_not_read(world: World) -> None:
    thread = world.begun()
    start = world.tip(thread)
    world.step(thread)
    world.step(thread)
    spoil(world, start)

    assert "## 2. checker" in read_thread(world.store, thread, last=1)


def test_thread_is_shown_up_to_the_damage(world: World) -> None:
    """The contents of all steps may be more than memory holds."""
    thread = world.stepped(says({"text": "x"}, "One."), says({"ok": True}, "Two."))
    name = world.snapshot(thread).get_head_node().payload["content"]["$ref"]
    snapshot = world.snapshot(thread)
    folder = get_tree(snapshot.objects, snapshot.nodes)
    for part in (name[0], name[1]):
        folder = get_tree(snapshot.objects, folder[part.encode()][1])
    spoil(world, folder[f"{name[2:]}.md".encode()][1].decode())

    pieces = render_thread(world.store, thread)

    assert next(pieces).startswith("# Do it.")
    assert "One." in next(pieces)
    with pytest.raises(StoreDamaged):
        next(pieces)


@pytest.fixture
def both(world: World) -> tuple[ThreadId, ThreadId]:
    """Return a thread of three steps, and a fork at its first with other steps."""
    thread = world.stepped(says({"text": "a"}))
    world.step(thread, says({"ok": False, "why": ["x", "y"]}, "No.\nToo long.\n", state={"n": 1}))
    world.step(thread, says({"text": "b"}, "Shorter."))
    forked = world.fork(thread, "1")
    world.step(forked, says({"ok": True, "why": ["y"]}, "Yes.\nToo long.\n", state={"n": 2}))
    return thread, forked


def test_the_other_way_round_is_the_opposite(world: World, both: tuple[ThreadId, ThreadId]) -> None:
    steps = diff_threads(world.store, both[1], both[0])["steps"]

    assert [step["in"] for step in steps] == ["both", "b"]
    assert steps[0]["meta"][1] == {"kind": "added", "path": "why[0]", "after": "x"}


def test_joins_differ_where_their_branches_said_something_else(world: World) -> None:
    threads = [world.begun(CHECKS) for _ in range(2)]
    for thread, line in zip(threads, ("Line 1.", "Line 2."), strict=True):
        drive(world, thread, script(coder="x", reviewer=f"Not yet.\n\n{line}"))

    step = diff_threads(world.store, *threads)["steps"][0]

    assert (step["role"], step["meta"]) == ("checks", [])
    assert "-Line 1.\n+Line 2.\n" in step["content"]


def step_after(world: World, thread: ThreadId, failures: int) -> NodeHash:
    """Take a step that first fails some times; return its node."""
    for _ in range(failures):
        world.fail(thread)
    return world.step(thread).head


def test_attempts_of_roles_are_counted_up_to_a_length(world: World) -> None:
    thread = world.begun()
    step_after(world, thread, 2)
    step_after(world, thread, 1)
    tip = world.tip(thread)

    assert count_failed_by_role(world.store, tip, most=7) == {"writer": 2, "checker": 1}
    assert count_failed_by_role(world.store, tip, most=6) == {}


def test_attempts_are_those_since_the_step_before(world: World) -> None:
    thread = world.begun()
    first = step_after(world, thread, 2)

    second = step_after(world, thread, 1)

    history = walk_history(world.store, world.tip(thread), through_forks=True)
    counts = [(step.record.node, count) for step, count in count_failed(history)]
    assert counts == [(second, 1), (first, 2)]
    text = "".join(render_thread(world.store, thread))
    assert text.count("after 2 failed attempts") == text.count("after 1 failed attempt ") == 1
    # Those before the oldest of the last events are counted too, though they are not shown.
    text = "".join(render_thread(world.store, thread, last=1))
    assert text.count("after 1 failed attempt ") == 1


def rows(world: World, words: str, **asked: Any) -> list[dict[str, Any]]:
    return list(search_threads(world.store, SearchRequest(re.compile(words), **asked)))


def places(world: World, words: str, **asked: Any) -> list[tuple[str, int, str]]:
    """Return thread, step and field of each row."""
    return [(row["thread"], row["step"], row["field"]) for row in rows(world, words, **asked)]


@pytest.fixture
def thread(world: World) -> ThreadId:
    """Return a thread of two steps, with `needle` everywhere."""
    world.put()
    thread = world.start(prompt="Find the needle.")
    world.step(thread, says({"text": "a needle"}, "No such thing."))
    world.step(thread, says({"ok": False, "list": [{"is": "needle"}]}, "needle, needle"))
    return thread


def test_prompt_meta_and_content_are_looked_at_newest_first(world: World, thread: ThreadId) -> None:
    assert places(world, "needle") == [
        (thread, 2, "meta.list[0].is"),
        (thread, 2, "content"),
        (thread, 1, "meta.text"),
        (thread, 0, "prompt"),
    ]


def test_step_that_was_taken_back_is_not_found(world: World, thread: ThreadId) -> None:
    forked = world.fork(thread, at="1")
    world.poke(forked)
    world.step(forked, says({"text": "a new needle"}))

    assert places(world, "a new needle") == [(forked, 1, "meta.text")]
    assert places(world, "a needle") == [(thread, 1, "meta.text")]
    world.poke(thread)
    assert (thread, 2, "content") not in places(world, "needle")


def test_prompt_of_a_fork_is_found_though_another_thread_is_started_alike(
    world: World, thread: ThreadId
) -> None:
    forks = [world.fork(thread, at="1") for _ in range(2)]
    world.kill(thread)
    world.remove(thread)
    world.reopen()
    alike = world.start(prompt="Find the needle.")

    prompts = [name for name, _, field in places(world, "needle") if field == "prompt"]
    assert prompts[0] == alike
    assert len(prompts) == 2
    assert prompts[1] in forks


def test_damaged_thread_is_one_row_and_the_others_are_searched(
    world: World, thread: ThreadId, git: Git
) -> None:
    spoiled = world.start(prompt="a spoiled needle")
    world.step(spoiled, says({"text": "y"}, "only here"))
    world.step(spoiled, says({"ok": True}, "needle"))
    store = Path(world.store.path)
    tip = world.tip(spoiled)
    found = git("grep", "-l", "only here", tip, "--", "nodes/*.md", cwd=store).split()[0]
    lose(world.store, git("rev-parse", found, cwd=store).strip())
    other = world.start()
    (store / "refs" / "threads" / other).write_text("garbage\n")
    world.reopen()

    told = rows(world, "needle")

    assert [row["thread"] for row in told[:3]] == [other, spoiled, spoiled]
    assert [row.get("status") for row in told[:3]] == ["damaged", None, "damaged"]
    assert "is missing" in told[2]["error"]
    assert {row["thread"] for row in told[3:]} == {thread}


# Threads that have split, as text, in full, and searched.

ANSWERS = {
    "coder": "x = 1",
    "reviewer": "fine",
    "builder": "built",
    "tester": "passed",
    "closer": "bye",
}


def headings_branches(world: World, thread: ThreadId) -> list[str]:
    text = "".join(render_thread(world.store, thread))
    return [line[3:] for line in text.splitlines() if line.startswith("## ")]


def test_read_tells_branches_between_their_split_and_their_join(
    world: World, golden: Golden
) -> None:
    thread = world.begun(CHECKS)
    turns.drive(world, thread, script(**ANSWERS))

    row = show_thread(world.store, thread, full=True)["steps"][1]["branches"][1]
    told = [read_thread(world.store, each) for each in (thread, row["thread"])]
    golden("commands/read-branches.md", "\n".join(told))


def found(world: World, pattern: str) -> list[tuple[Any, Any]]:
    rows = search_threads(world.store, SearchRequest(re.compile(pattern)))
    return sorted((row["role"] or "", row["field"]) for row in rows)


def test_search_tells_a_step_once_and_a_prompt_once(world: World) -> None:
    drive(world, world.begun(CHECKS), script(**ANSWERS))

    assert found(world, "Do it") == [("", "prompt")]
    assert found(world, "fine|passed") == [("reviewer", "content"), ("tester", "content")]
    assert found(world, "x = 1") == [("coder", "content")]


def test_search_tells_the_prompt_of_a_workflow_in_a_workflow_if_it_is_its_own(world: World) -> None:
    thread = begin_nested(world)
    drive(world, thread, script(planner="deep", digger={"depth": 2}, closer={"good": True}))

    assert found(world, "Do it") == [("", "prompt")]
    assert found(world, "dig deep") == [("", "prompt")]
    rows = search_threads(world.store, SearchRequest(re.compile("Do it"), workflow="middle"))
    assert [row["field"] for row in rows] == ["prompt"]


def test_a_fork_tells_the_branches_of_a_thread_that_was_removed(world: World) -> None:
    thread = world.begun(NESTED)
    drive(world, thread, script(reader="read", one="deep inside", other={"b": 1}))
    before = headings_branches(world, thread)
    fork = world.fork(thread)
    assert found(world, "deep inside") == [("one", "content")] * 2

    world.remove(thread)
    world.reopen()

    assert [each for each in before if each.startswith("Branch")] == [
        each for each in headings_branches(world, fork) if each.startswith("Branch")
    ]
    assert found(world, "deep inside") == [("one", "content")] * 2
    rows = search_threads(world.store, SearchRequest(re.compile("deep inside")))
    assert {(row["thread"], row["step"]) for row in rows} == {(fork, 3)}


# Excerpts: keys masked, also at the cut; and git prints the whole.

Told = tuple[str, Any, str]


def told(world: World, snapshot: Snapshot) -> Told:
    """Return the title, the changes and the note of the newest entry."""
    reader = StoryReader(world.store, Telling(is_whole=True))
    *_, entry = reader.walk(snapshot.record.thread, snapshot.commit.oid)
    note = entry["note"]
    changes = entry["changes"] and entry["changes"]["value"]
    return entry["title"], changes, "" if note is None else note["text"]


def test_patch_shows_its_values(world: World) -> None:
    thread = world.begun()
    world.patch(thread, {"draft": None, "n": 1})

    assert told(world, world.snapshot(thread))[1] == {"draft": None, "n": 1}


def test_a_large_patch_is_cut_where_texts_are(world: World) -> None:
    thread = world.begun()
    world.patch(thread, {f"n{number}": "x" * 100 for number in range(700)})

    *_, entry = StoryReader(world.store, Telling()).walk(thread, world.snapshot(thread).commit.oid)

    assert entry["changes"]["isCut"]
    assert len(entry["changes"]["text"]) <= CONTENT_BYTES


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


def test_a_text_is_cut_between_characters() -> None:
    whole = {"text": "äöü", "bytes": 6, "isCut": False, "command": "git x"}
    assert cut_text("äöü", str, "git x", most=6) == whole
    cut = cut_text("äöü", str, "git x", most=5)
    about = {"bytes": 6, "isCut": True, "command": "git x"}
    assert cut == {"text": "äö", "isLog": False, **about}
    log = cut_text("äöü", str, "git x", most=5, is_log=True)
    assert log == {"text": "öü", "isLog": True, **about}


def test_no_part_of_a_key_is_left_at_the_cut() -> None:
    for before in range(8_150, 8_200):
        text = "a " * (before // 2) + KEY + " b" * 20_000
        assert KEY[:6] not in cut_text(text, MASK, "git x", most=ASIDE_BYTES)["text"]
        log = cut_text(text[::-1].replace(KEY[::-1], KEY), MASK, "git x", most=8192, is_log=True)
        assert KEY[-6:] not in log["text"]
    assert KEY[:6] not in cut_text((KEY + " ") * 2_000, MASK, "git x", most=ASIDE_BYTES)["text"]


def test_a_long_value_is_cut_as_its_text(world: World) -> None:
    snapshot = world.snapshot(world.stepped(says({"text": "x" * 70_000, KEY: SECRET})))
    step = snapshot.get_head_node()

    cut = excerpt_json(snapshot, step, step.payload["meta"], MASK)

    assert cut["isCut"]
    assert len(cut["text"]) <= CONTENT_BYTES
    assert excerpt_json(snapshot, step, {KEY: 1}, MASK) == {"value": {"[masked]": 1}}
