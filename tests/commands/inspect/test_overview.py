"""The threads of a store in groups."""

from pathlib import Path
from typing import Any

import pytest
from bench.archived import add_crowd
from commands.inspect.test_context import branch_of
from commands.inspect.test_show import fail_reviewer, split_of
from commands.turns import begin_turn, count_reads, script
from commands.world import World, fails, replied
from refusing import refuses
from web.stories import tell_waiting

from uwf_git.commands.inspect import overview as overview_module
from uwf_git.commands.inspect.list import view_thread_row
from uwf_git.commands.inspect.overview import Overview, ThreadWatch, Wanted
from uwf_git.model.names import Oid, ThreadId, read_time_ms
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import lock_drive, lock_thread


@pytest.fixture
def overview(world: World) -> Overview:
    return Overview(world.store, {"DEPLOY_PASSWORD": "correct-Horse-battery-7"})


def listed(world: World, overview: Overview, **wanted: Any) -> list[str]:
    return [row["thread"] for row in overview.read(world.store, Wanted(**wanted))["rows"]]


def test_what_needs_a_person_comes_first(world: World, overview: Overview) -> None:
    failed, ready = world.begun(), world.start()
    world.fail(failed, fails("correct-Horse-battery-7 was wrong"))
    waiting = tell_waiting(world)
    ended = world.start()
    world.kill(ended, reason="")

    seen = overview.read(world.store, Wanted(show="all"))

    assert [(row["thread"], row["group"]) for row in seen["rows"]] == [
        (waiting, "needs"), (failed, "needs"), (ready, "others"), (ended, "ended"),
    ]  # fmt: skip
    assert "correct-Horse" not in str(seen)
    assert seen["counts"] == {"needs": 2, "running": 0, "others": 1, "ended": 1}
    assert listed(world, overview, show="ended") == [ended]
    assert listed(world, overview, search="WAS failed") == [failed]
    assert listed(world, overview, workflow="none") == []


def test_branch_is_a_row_until_its_trunk_is_here(world: World, overview: Overview) -> None:
    trunk = split_of(world)
    branches = [branch_of(world, trunk, number) for number in range(2)]
    ref, tip = f"refs/threads/{trunk}", world.tip(trunk)
    for branch in branches:
        world.step(branch, lambda _turn: replied({}))
    world.store.refs.delete(ref, seen=tip)
    assert sorted(listed(world, overview)) == sorted(branches)

    world.store.refs.create(ref, tip)
    assert listed(world, overview) == [trunk]


def test_pages_have_every_thread_once(
    world: World, overview: Overview, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put()
    threads = [world.start() for _ in range(7)]
    for ended in threads[:3]:
        world.kill(ended, reason="")
    expected = [*reversed(threads[3:]), *reversed(threads[:3])]

    for most in (1, 2, 3, 4, 7):
        for looked_at in (1, 100):
            monkeypatch.setattr(overview_module, "_MOST_LOOKED_AT", looked_at)
            found: list[str] = []
            after = None
            for _ in range(20):
                page = overview.read(world.store, Wanted(show="all", after=after, most=most))
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
        store: Store, heads: None, thread: ThreadId, *, with_branches: bool
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


# A watch over threads: what has changed, in which order, and that standing still costs nothing.


# The ids of tests are older than their clock.
BEGUN_MS = read_time_ms(ThreadId("01J00000000000000000000001"))
KEY = "correct-horse-battery"


def watching(world: World, *roots: ThreadId) -> ThreadWatch:
    return ThreadWatch(world.store, roots, {"MY_TOKEN": KEY}, now_ms=BEGUN_MS + 3_600_000)


def changed(watch: ThreadWatch) -> list[tuple[str, str]]:
    return [(row["thread"], row["status"]) for row in watch.look()]


def shown(watch: ThreadWatch) -> list[tuple[str, str]]:
    return [(row["thread"], row["status"]) for row in watch.list_rows()]


def test_each_thread_is_told_once_and_again_when_it_has_moved(world: World) -> None:
    one, two = world.begun(), world.begun()
    watch = watching(world)

    assert changed(watch) == [(one, "ready"), (two, "ready")]
    assert changed(watch) == []
    world.step(two)
    assert changed(watch) == [(two, "ready")]
    three = world.begun()
    assert changed(watch) == [(three, "ready")]
    world.step(two)
    world.step(two)
    assert changed(watch) == [(two, "completed")]
    assert shown(watch) == [(three, "ready"), (one, "ready"), (two, "completed")]


def test_those_at_work_come_first_then_those_that_need_somebody(world: World) -> None:
    ready, failed, at_work = world.begun(), world.begun(), world.begun()
    waiting = world.start("human")
    world.step(waiting)
    world.fail(failed)
    watch = watching(world)
    with lock_thread(world.store, at_work, since_ms=1) as lock:
        lock.say("writer")
        watch.look()
        running = shown(watch)[0]
    assert running == (at_work, "running")
    watch.look()

    assert shown(watch) == [
        (waiting, "waiting"), (failed, "failed"), (at_work, "ready"), (ready, "ready")
    ]  # fmt: skip
    assert watch.count() == {"waiting": 1, "failed": 1, "ready": 2}


def test_ended_threads_are_those_of_a_day_and_removed_ones_are_gone(world: World) -> None:
    add_crowd(world.store, size=3)
    thread = world.begun()
    world.kill(thread, reason="enough")
    watch = watching(world)

    assert changed(watch) == [(thread, "killed")]
    world.remove(thread)
    assert changed(watch) == []
    assert shown(watch) == []


def test_named_threads_have_their_branches_and_are_over_when_they_have_ended(world: World) -> None:
    other, thread = world.begun(), split_of(world)
    watch, all_of_them = watching(world, thread), watching(world)
    assert changed(watch) == [(thread, "split")]
    all_of_them.look()

    world.step(thread, fail_reviewer)
    branches = [branch_of(world, thread, number) for number in (0, 1)]
    assert sorted(changed(watch)) == sorted(
        [(branches[0], "failed"), (branches[1], "ready"), (thread, "split")]
    )
    # Else a thread that has split is one row, where what its branches need is.
    assert changed(all_of_them) == [(thread, "split")]
    assert shown(all_of_them) == [(thread, "split"), (other, "ready")]
    assert all_of_them.count() == {"failed": 1, "ready": 1}
    assert not watch.is_over
    world.kill(branches[1])
    assert (branches[1], "killed") in changed(watching(world, thread))
    world.kill(thread, reason="enough")
    watch.look()
    assert watch.is_over


def test_branches_at_work_are_told_of_their_thread(world: World) -> None:
    thread = split_of(world)
    world.step(thread, script())
    branch = branch_of(world, thread, 1)
    watch = watching(world)
    watch.look()
    with lock_thread(world.store, branch, since_ms=1) as lock:
        lock.say("tester")
        assert changed(watch) == [(thread, "split")]
        (row,) = watch.list_rows()

        assert row["branches"]["running"] == 1
        assert watch.list_working_below(thread) == ["tester"]


def test_work_is_role_attempt_log_and_usage(world: World, thread: ThreadId) -> None:
    world.fail(thread)
    watch = watching(world)
    watch.look()
    run = Path(world.store.local_path("run", thread, begin_turn(world, thread)))
    with lock_thread(world.store, thread, since_ms=7) as lock:
        lock.say("writer", "nobody")
        (row,) = watch.look()
        work = watch.find_work(thread)
        assert work is not None
        assert row["atWork"] == {"role": "writer", "agent": "nobody", "attempt": 2, "since": 7}
        assert (work.read_log(), work.read_usage()) == ("", {})

        (run / "stderr").write_text(f"reading\nwith {KEY}\n\n")
        files = Path(f"{run}.files")
        files.mkdir()
        (files / "trace.jsonl").write_text('{"type": "turn", "usage": {"inputTokens": 4}}\n')
        assert work.read_log() == "with [masked]"
        assert work.read_usage() == {"inputTokens": 4}
        assert watch.look() == []


def test_a_look_where_nothing_has_happened_reads_no_object(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_crowd(world.store, size=100, is_active=True)
    watch = watching(world)
    assert len(watch.look()) == 100
    told = [watch.summarize(row) for row in watch.list_rows()]
    assert told[0].task == "Do task 99."
    counted = count_reads(monkeypatch)
    for _look in range(3):
        assert watch.look() == []
        assert [watch.summarize(row) for row in watch.list_rows()] == told
    assert counted.objects == []

    thread = ThreadId(f"01H{7:023}")
    with lock_drive(world.store, thread, since_ms=1):
        assert changed(watch) == [(thread, "running")]
    # Its tip alone.
    assert len(set(counted.objects)) == 1


def test_damaged_thread_is_a_row_that_says_so(world: World, thread: ThreadId) -> None:
    world.store.refs.create(f"refs/threads/{thread[:-1]}X", Oid("1" * 40))
    Path(world.store.path, "refs/threads", f"{thread[:-1]}Y").write_text("no commit\n")
    watch = watching(world)

    rows: list[dict[str, Any]] = watch.look()

    assert sorted(row["status"] for row in rows) == ["damaged", "damaged", "ready"]
    world.step(thread)
    watch.look()
    assert watch.count() == {"damaged": 2, "ready": 1}
