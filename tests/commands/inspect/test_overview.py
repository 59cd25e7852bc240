"""The threads of a store in groups."""

from pathlib import Path
from typing import Any

import pytest
from commands.world import World, fails, replied
from refusing import refuses
from web.stories import tell_waiting

from uwf_git.commands.control.steer import kill_thread
from uwf_git.commands.inspect import overview as overview_module
from uwf_git.commands.inspect.list import view_thread_row
from uwf_git.commands.inspect.overview import Overview, Wanted
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.model.names import ThreadId
from uwf_git.store.remotes.remotes import RemoteHeads
from uwf_git.store.store import Store


@pytest.fixture
def overview(world: World) -> Overview:
    return Overview(world.store, {"DEPLOY_PASSWORD": "correct-Horse-battery-7"})


def listed(world: World, overview: Overview, **wanted: Any) -> list[str]:
    return [row["thread"] for row in overview.read(world.store, Wanted(**wanted))["rows"]]


def test_what_needs_a_person_comes_first(world: World, overview: Overview) -> None:
    failed, ready = world.begun(), world.start()
    with pytest.raises(TurnFailed):
        world.step(failed, fails("correct-Horse-battery-7 was wrong"))
    waiting = tell_waiting(world)
    ended = world.start()
    kill_thread(world.store, world.caller, ended, reason="")

    seen = overview.read(world.store, Wanted(show="all"))

    groups = [(row["thread"], row["group"]) for row in seen["rows"]]
    assert groups == [
        (waiting, "needs"), (failed, "needs"), (ready, "others"), (ended, "ended"),
    ]  # fmt: skip
    assert "correct-Horse" not in str(seen)
    assert seen["counts"] == {"needs": 2, "running": 0, "others": 1, "ended": 1}
    assert listed(world, overview, show="ended") == [ended]
    assert listed(world, overview, search="WAS failed") == [failed]
    assert listed(world, overview, workflow="none") == []


def test_pages_have_every_thread_once(
    world: World, overview: Overview, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put()
    threads = [world.start() for _ in range(7)]
    for ended in threads[:3]:
        kill_thread(world.store, world.caller, ended, reason="")
    expected = [*reversed(threads[3:]), *reversed(threads[:3])]

    for most in (1, 2, 3, 4, 7):
        for looked_at in (1, 100):
            monkeypatch.setattr(overview_module, "_MOST_LOOKED_AT", looked_at)
            found: list[str] = []
            after = None
            for _ in range(20):
                wanted = Wanted(show="all", after=after, most=most)
                page = overview.read(world.store, wanted)
                found += [row["thread"] for row in page["rows"]]
                after = page["next"]
                if after is None:
                    break
            assert found == expected, (most, looked_at)


def test_unknown_cursor_is_refused(world: World, overview: Overview) -> None:
    for text in ("", "x", "4.01J00000000000000000000001", "1.x"):
        with refuses("bad-cursor"):
            listed(world, overview, after=text)


def test_only_what_moved_is_read_again(
    world: World, overview: Overview, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put()
    one, two = world.start(), world.start()
    assert listed(world, overview) == [two, one]
    read: list[str] = []

    def view_and_note(
        store: Store, heads: RemoteHeads, thread: ThreadId, *, with_branches: bool
    ) -> dict[str, Any] | None:
        read.append(thread)
        return view_thread_row(store, heads, thread, with_branches=with_branches)

    monkeypatch.setattr(overview_module, "view_thread_row", view_and_note)
    listed(world, overview)
    assert read == []
    world.step(one)
    assert listed(world, overview) == [two, one]
    assert read == [one]


def test_damaged_refs_need_a_person(world: World, overview: Overview) -> None:
    bad = Path(world.store.path, "refs/threads/01J99999999999999999999999")
    bad.parent.mkdir(exist_ok=True)
    bad.write_text("x\n")

    rows = overview.read(world.store, Wanted())["rows"]

    assert [(row["status"], row["group"]) for row in rows] == [("damaged", "needs")]
    assert listed(world, overview, search="commit") == ["01J99999999999999999999999"]


def test_children_are_found_ended_or_not(world: World, overview: Overview) -> None:
    parent = world.begun()
    environ = {**world.caller.environ, "UWF_THREAD_ID": parent}
    world.caller = world.caller._replace(environ=environ)
    one, two = world.start(), world.start()
    kill_thread(world.store, world.caller, one, reason="")

    children = overview.list_children(world.store, parent, until_ms=2**47)

    assert [row["thread"] for row in children] == [one, two]
    # What ended and began later than its parent last changed is no child of it.
    assert [row["thread"] for row in overview.list_children(world.store, parent, until_ms=0)] == [
        two
    ]


def test_rows_are_chosen_by_status_age_and_cost(world: World, overview: Overview) -> None:
    cheap, dear = world.begun(), world.start()
    world.step(cheap, lambda _turn: replied({"text": "a"}, usage={"costUsd": 0.5}))
    world.step(dear, lambda _turn: replied({"text": "a"}, usage={"costUsd": 2}))

    rows = overview.read(world.store, Wanted())["rows"]

    assert [(row["costUsd"], row["workMs"]) for row in rows] == [(2, 1500), (0.5, 1500)]
    assert listed(world, overview, least_cost=1) == [dear]
    assert listed(world, overview, since_ms=rows[0]["updated"]) == [dear]
    assert listed(world, overview, status="ready") == [dear, cheap]
    assert listed(world, overview, status="failed") == []
