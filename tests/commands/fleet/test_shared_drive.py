"""A run that shares its thread: steered from elsewhere, frozen, without its hub."""

import signal
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from commands.at_work import wait_until
from commands.fleet.machines import PLAIN, SPLIT, SPLIT_STEPS, Field, ended
from commands.sharing import Site, Sites, refs_of
from commands.world import fails, replied, says
from refusing import refuses

from uwf_git.commands.drive_thread import DriveRequest, Watcher
from uwf_git.commands.fleet import shared_drive
from uwf_git.commands.fleet.claims import Hub, Keeper
from uwf_git.commands.fleet.shared_drive import Share, SharedDrive, hold_shared_drive
from uwf_git.commands.remote.push import Pushed
from uwf_git.commands.remote.push_plan import NotPushed
from uwf_git.commands.start import StartRequest
from uwf_git.commands.step.record_turn import TurnInterrupted
from uwf_git.commands.step.step_thread import StepRequest
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.remotes.remotes import parse_remote_url
from uwf_git.store.remotes.transport import RemoteFailed
from uwf_git.store.threads.local_files import lock_drive


def test_a_frozen_machine_that_wakes_loses_its_step_to_a_fork(field: Field) -> None:
    a, b, c = (field.machine(name) for name in "abc")
    thread = a.begin(PLAIN)
    field.let_wait()
    first = b.work(thread)
    with ended(first):
        field.wait_paid(1)
        first.send_signal(signal.SIGSTOP)
        field.go.touch()
        with c.work(thread) as second:
            _out, err = second.communicate()
        assert second.returncode == 0, err
        first.send_signal(signal.SIGCONT)
        _out, err = first.communicate()
        assert first.returncode == 4, err
        assert "claim-lost" in err or "while it ran here" in err
    assert field.paid() == 1 + 3
    assert field.log(thread)[-1].startswith("end: completed after 3 steps")
    # Its clone follows the hub: another run there finds the thread ended, and no two sides.
    with b.work(thread) as again:
        out, err = again.communicate()
    assert "diverged" not in err
    assert (again.returncode, '"steps":0,"stopped":"end"' in out) == (0, True)


def test_a_pause_typed_elsewhere_stops_the_run_after_its_step(field: Field) -> None:
    a, b = field.machine("a"), field.machine("b")
    thread = a.begin(PLAIN)
    field.let_wait()
    first = b.work(thread)
    with ended(first):
        field.wait_paid(1)
        a.run("thread", "pause", thread)
        a.run("push")
        clone = next((b.home / ".uwf/hubs").iterdir())
        ref = clone / "refs/threads" / thread
        tip = field.git("rev-parse", f"refs/threads/{thread}")
        wait_until(lambda: ref.read_text() == tip, "the pause has not arrived")
        field.go.touch()
        out, err = first.communicate()
        assert first.returncode == 0, err
    assert '"stopped":"paused"' in out
    assert [each.partition(":")[0] for each in field.log(thread)] == ["start", "pause", "one"]


def test_a_kill_typed_elsewhere_ends_the_agent(field: Field) -> None:
    a, b = field.machine("a"), field.machine("b")
    thread = a.begin(PLAIN)
    field.let("sleep 600")
    first = b.work(thread)
    with ended(first):
        field.wait_paid(1)
        a.run("thread", "kill", thread)
        a.run("push")
        out, err = first.communicate()
    assert (first.returncode, '"stopped":"killed"' in out) == (1, True), err
    assert [each.partition(":")[0] for each in field.log(thread)] == ["start", "kill"]


def test_a_kill_of_a_branch_typed_elsewhere_ends_its_agent_and_the_rest_goes_on(
    field: Field,
) -> None:
    a, b = field.machine("a"), field.machine("b")
    merge = "merge: last\n      "
    thread = a.begin(SPLIT.replace(merge, f"{merge}onError: continue\n      ", 1))
    asleep = field.place / "asleep"
    first = f'[ "$(wc -l < {field.place}/paid)" = 1 ]'
    field.let(f"{first} || [ -e {field.go} ] || {{ echo >> {asleep}; sleep 600; }}")
    work = b.work(thread)
    with ended(work):
        # Who is paid and not yet asleep would see `go`, and end without a second turn.
        wait_until(lambda: asleep.exists() and len(asleep.read_bytes()) == 4, "not all sleep")
        assert field.paid() == 5
        # Those beside the killed one begin anew; what they do is over at once.
        field.go.touch()
        a.run("fetch")
        a.run("thread", "kill", a.json("thread", "show", thread)["branches"][0]["thread"])
        a.run("push")
        _out, err = work.communicate()
        assert work.returncode == 0, err
    assert "join: parallel: 2 completed, 1 killed" in field.log(thread)
    assert field.paid() == 5 + 3 + 1
    assert not a.json("verify")["problems"]


def test_a_step_waits_for_a_hub_that_is_away(field: Field, tmp_path: Path) -> None:
    a = field.machine("a")
    thread = a.begin(PLAIN)
    field.let_wait()
    first = a.start("thread", "run", thread, "--claim")
    with ended(first):
        field.wait_paid(1)
        field.hub.rename(tmp_path / "away")
        field.go.touch()
        wait_until(lambda: "one" in a.run("thread", "show", thread, "--format=text"), "no step")
        (tmp_path / "away").rename(field.hub)
        _out, err = first.communicate()
        assert first.returncode == 0, err
    assert field.paid() == 3
    assert field.log(thread)[-1].startswith("end: completed")


def test_a_claimed_run_pushes_a_thread_that_the_hub_does_not_have(field: Field) -> None:
    a = field.machine("a")
    a.begin(PLAIN)
    a.run("config", "set", "uwf.claim", "true")
    thread = a.json("run", "plain", "-p", "x", "--agent", str(field.agent))["thread"]
    assert f"refs/archive/{thread}" in field.refs()


# One thread of a hub on several machines: who claims it runs it, and nobody pays twice.


def test_a_machine_that_has_nothing_runs_a_thread_to_its_end(field: Field) -> None:
    a = field.machine("a")
    thread = a.begin(SPLIT)
    with field.machine("b").work(thread) as process:
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert '"status":"completed"' in out
    assert field.paid() == SPLIT_STEPS
    assert f"refs/archive/{thread}" in field.refs()
    assert not field.refs("refs/claims")
    assert not field.refs("refs/threads")
    assert a.json("fetch")
    assert not a.json("verify")["problems"]


def test_the_same_machine_goes_on_at_once_and_takes_the_orphan_up(field: Field) -> None:
    a, b = field.machine("a"), field.machine("b")
    thread = a.begin(PLAIN)
    field.let_wait()
    first = b.work(thread, "--ttl", "600")
    with ended(first):
        field.wait_paid(1)
        first.kill()
        first.wait()
        field.go.touch()
        with b.work(thread, "--ttl", "600") as second:
            _out, err = second.communicate()
        assert second.returncode == 0, err
    assert field.paid() == 3


# One machine, in this process: what the hub does not take.


def hold(
    site: Site,
    thread: ThreadId,
    *,
    ok: bool = True,
    play: Player | None = None,
    may_have_ended: bool = False,
    **share: Any,
) -> AbstractContextManager[SharedDrive]:
    """Hold *thread* for a run that shares it; its reviewer says *ok*."""
    site.world.reopen()

    def reply(turn: Turn) -> Played:
        return replied({"text": "x"} if turn.role == "writer" else {"ok": ok})

    step = StepRequest(thread, play or reply, Choice(("mine",)), str(site.world.place))
    store, caller = site.world.store, site.world.caller
    silent = Watcher(*[lambda *_what: None] * 3)
    how = Share(ttl_s=0.3, poll_s=0.02, **share)
    request = DriveRequest(step, may_have_ended=may_have_ended)
    return hold_shared_drive(store, caller, request, share=how, watcher=silent)


def test_an_end_that_was_not_pushed_is_pushed_by_the_next_run(sites: Sites, hub: Path) -> None:
    site, _other, thread = sites
    site.end(thread)
    with hold(site, thread) as drive:
        driven = drive.run()
    assert (driven.stopped, driven.steps) == ("end", 0)
    assert set(refs_of(hub)) == {f"archive/{thread}", "workflows/demo"}
    with refuses("thread-not-active"), hold(site, thread):
        pass


def test_a_hub_that_knows_the_end_is_asked_for_no_claim(
    sites: Sites, hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, _other, thread = sites
    site.end(thread)
    site.push()
    before = refs_of(hub)
    monkeypatch.setattr(Keeper, "take", None)
    with hold(site, thread, may_have_ended=True) as drive:
        driven = drive.run()
    assert (driven.stopped, driven.steps, refs_of(hub)) == ("end", 0, before)


def test_a_hub_that_says_nothing_does_not_keep_a_run_that_was_interrupted(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, _other, thread = sites
    monkeypatch.setattr(shared_drive, "_FAREWELL_S", 0.01)
    says = threading.Event()
    waited: list[bool] = []

    def be_silent(*_given: object, **_more: object) -> set[ThreadId]:
        waited.append(says.wait(60))
        raise RemoteFailed(parse_remote_url("/hub", relative_to="/"), "it did not answer in time")

    def play(turn: Turn) -> Played:
        monkeypatch.setattr(Hub, "look", be_silent)
        monkeypatch.setattr(Hub, "swap", be_silent)
        monkeypatch.setattr(shared_drive, "push_remote", be_silent)
        return fails(kind="interrupted")(turn)

    with pytest.raises(TurnInterrupted), hold(site, thread, play=play) as drive:
        drive.run()
    assert waited == []
    says.set()


def test_an_answer_that_came_after_an_interrupt_is_at_the_hub_and_nothing_follows_it(
    sites: Sites, hub: Path
) -> None:
    site, _other, thread = sites
    plays = iter([fails(kind="interrupted", is_kept=True), says({"ok": False})])
    before = site.find(f"threads/{thread}")

    def play(turn: Turn) -> Played:
        return next(plays)(turn)

    with pytest.raises(KeyboardInterrupt), hold(site, thread, play=play) as drive:
        drive.run()
    assert before != refs_of(hub)[f"threads/{thread}"] == site.find(f"threads/{thread}")
    assert f"claims/{thread}" not in refs_of(hub)


def test_a_branch_that_is_cancelled_as_it_pushes_begins_no_agent(sites: Sites) -> None:
    site, _other, thread = sites
    with hold(site, thread) as drive:
        drive.cancelled.set()
        with pytest.raises(KeyboardInterrupt):
            drive.push()
        drive.cancelled.clear()


def test_an_end_that_came_too_late_is_kept_as_a_fork(sites: Sites, hub: Path) -> None:
    site, other, thread = sites
    site.end(thread)
    ours = site.find(f"archive/{thread}")
    other.step(thread)
    other.push()
    with hold(site, thread, new_id=site.world.new_id) as drive:
        assert drive.run().stopped == "end"
    assert refs_of(hub)[f"archive/{thread}"] == site.find(f"archive/{thread}")
    assert ours not in {None, site.find(f"archive/{thread}")}
    assert len(site.refs("threads")) == 1


def test_threads_that_agents_start_go_to_the_hub_unless_somebody_drives_them(
    sites: Sites, hub: Path
) -> None:
    site, other, thread = sites
    other.world.put(PLAIN)
    other.push()
    site.world.start()
    started = [thread]

    def begin(workflow: str) -> ThreadId:
        return site.world.begin(StartRequest(workflow, "Do.", ("mine",), parent=started[-1]))

    def play(turn: Turn) -> Played:
        # The workflow is of the hub, and new on this machine.
        started.extend(begin("plain") for _ in range(2))
        return says({"ok": True})(turn)

    busy = lock_drive(site.world.store, begin("demo"), since_ms=0)
    with busy, hold(site, thread, play=play) as drive:
        drive.run()

    names = {f"threads/{each}" for each in started[1:]}
    assert set(refs_of(hub)) == {f"archive/{thread}", "workflows/demo", "workflows/plain", *names}


def test_a_lock_at_the_hub_is_waited_for_and_told(sites: Sites, hub: Path) -> None:
    site, _other, thread = sites
    lock = hub / f"refs/threads/{thread}.lock"
    with hold(site, thread, ok=False) as drive:
        lock.touch()
        with refuses("ref-locked", match=f"{thread}.lock is held by another git process"):
            drive.run()
    lock.unlink()
    assert site.push().failure() is None


def test_a_hub_that_has_nothing_newer_is_not_asked_for_ever(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, _other, thread = sites
    with hold(site, thread, ok=False) as drive:
        left = [NotPushed(f"refs/threads/{thread}", "fetch-first", Oid("1" * 40), None)]
        pushed = Pushed(drive._hub.remote, [], [], left, [])  # noqa: SLF001 (as its pushes have it)
        monkeypatch.setattr(shared_drive, "push_remote", lambda *_given: pushed)
        with refuses("fetch-first"):
            drive.run()
