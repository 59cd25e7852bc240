"""How often a step failed before it succeeded, as its thread's commits tell."""

import re
from typing import Any

import pytest
from commands.inspect.test_shared_step import fork
from commands.world import World, fails, read_thread, says
from store.loose import loosen

from uwf_git.commands.inspect.read import diff_threads, render_thread
from uwf_git.commands.inspect.show import count_failed_by_role
from uwf_git.commands.inspect.story import count_failed
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.store.objects.objects import get_tree
from uwf_git.store.threads.history import walk_history

HOSTILE = "# Broken out\n\n## 9. forged: x\n\n```\n<!--\n\nTitle\n===\n"


def timeless(told: str) -> str:
    """Return the Markdown without times, which differ at each call."""
    return re.sub(r"2025-10-09 08:53:\d\d UTC", "TIME", told)


def test_thread_is_shown_from_task_to_end(world: World) -> None:
    thread = world.begun()
    world.step(thread, says({"text": "a poem"}, "# A poem\n\nRoses.\n"), command="uwf-poet --fast")
    world.fail(thread, fails("no key", stdout=b"half", stderr=b"KeyError\n"))
    world.retry(thread, hint="The key is in `.env`.")
    world.step(thread, says({"ok": True}, '{"meta": {"ok": true}}\n'))
    world.step(thread)
    workflow = world.snapshot(thread).record.workflow
    first, second = [
        node.hash for node in world.snapshot(thread).walk_chain() if "prev" in node.payload
    ][::-1]

    told = timeless(read_thread(world.store, thread))

    assert told == (
        "# Do it.\n\n"
        f"thread `{thread}` · workflow **demo** `{workflow}` · **completed** · 2 steps"
        " · started TIME\n\n"
        "> Do it.\n\n"
        "## 1. writer: A poem\n\n"
        f"uwf-poet · TIME · 1.5 s · `{first}`\n\n"
        "- **text**: a poem\n\n"
        "### A poem\n\nRoses.\n\n"
        "## checker: attempt 1 failed\n\n"
        "TIME · 0.5 s\n\n"
        "- **exited**: no key\n\n"
        "It printed:\n\n```text\nhalf\n```\n\nIts log:\n\n```text\nKeyError\n```\n\n"
        "## To be tried again\n\nTIME · C O Mitter\n\n"
        "The key is in `.env`.\n\n"
        "## 2. checker\n\n"
        f"nobody · TIME · 1.5 s · after 1 failed attempt · `{second}`\n\n"
        "- **ok**: true\n\n"
        "## Completed after 2 steps\n\n"
        "TIME · C O Mitter\n"
    )


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
    thread = world.begun()
    world.step(thread, says({"text": "x"}, "One."))
    world.step(thread, says({"ok": True}, "Two."))
    step = world.snapshot(thread).get_head_node()
    name = step.payload["content"]["$ref"]
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


def headings(world: World, thread: str, **asked: int) -> list[str]:
    """Return the headings of a thread's events."""
    told = read_thread(world.store, thread, **asked)
    return [line for line in told.splitlines() if line.startswith("## ")]


def diffed(world: World, one: str, other: str) -> dict[str, Any]:
    return diff_threads(world.store, one, other)


@pytest.fixture
def both(world: World) -> tuple[ThreadId, ThreadId]:
    """Return a thread of three steps, and a fork at its first with other steps."""
    thread = world.begun()
    world.step(thread, says({"text": "a"}))
    world.step(thread, says({"ok": False, "why": ["x", "y"]}, "No.\nToo long.\n", state={"n": 1}))
    world.step(thread, says({"text": "b"}, "Shorter."))
    forked = fork(world, thread, "1")
    world.step(forked, says({"ok": True, "why": ["y"]}, "Yes.\nToo long.\n", state={"n": 2}))
    return thread, forked


def test_the_other_way_round_is_the_opposite(world: World, both: tuple[ThreadId, ThreadId]) -> None:
    steps = diffed(world, both[1], both[0])["steps"]

    assert [step["in"] for step in steps] == ["both", "b"]
    assert steps[0]["meta"][1] == {"kind": "added", "path": "why[0]", "after": "x"}


def step_after(world: World, thread: ThreadId, failures: int) -> NodeHash:
    """Take a step that first fails some times; return its node."""
    for _ in range(failures):
        world.fail(thread)
    return world.step(thread).head


def counts(world: World, thread: ThreadId) -> list[tuple[NodeHash, int]]:
    """Return the steps with their failed attempts, newest first: also those taken back."""
    history = walk_history(world.store, world.tip(thread), through_forks=True)
    return [(step.record.node, count) for step, count in count_failed(history)]


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

    assert counts(world, thread) == [(second, 1), (first, 2)]
    text = "".join(render_thread(world.store, thread))
    assert text.count("after 2 failed attempts") == text.count("after 1 failed attempt ") == 1
    # Those before the oldest of the last events are counted too, though they are not shown.
    text = "".join(render_thread(world.store, thread, last=1))
    assert text.count("after 1 failed attempt ") == 1
