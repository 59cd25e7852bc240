"""Claims: one of those who claim a thread gets it, and a dead one passes on."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping

import pytest
from commands.at_work import wait_until
from commands.fleet.machines import FAST, PLAIN, SPLIT, SPLIT_STEPS, Field, Machine, ended, finished
from commands.world import World

from uwf_git.commands.fleet import claims
from uwf_git.commands.fleet.claims import Hub, Keeper, Move
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.remotes.incoming import name_blob
from uwf_git.store.remotes.remotes import CLAIMS, parse_remote_url
from uwf_git.store.remotes.transport import RemoteFailed
from uwf_git.store.store import Store


def test_a_claim_that_is_renewed_keeps_others_away(field: Field) -> None:
    a, b, c = (field.machine(name) for name in "abc")
    thread = a.begin(PLAIN)
    field.let_wait()
    first = b.work(thread)
    with ended(first):
        field.wait_paid(1)
        # The next beat says who is at work.
        wait_until(lambda: a.json("ps", "--remote")[0]["role"] == "one", "no role is told")
        assert [row["thread"] for row in a.json("ps", "--remote")] == [thread]
        err = finished(c.work(thread), 4)
        assert "renews its claim" in err
        field.go.touch()
        finished(first)
    assert field.paid() == 3
    assert a.run("ps", "--remote", "--format=text").strip() == ""


def test_a_claim_that_outlived_its_thread_is_not_told_and_goes(field: Field, a: Machine) -> None:
    thread = a.begin(PLAIN)
    a.drive()
    field.git("update-ref", f"refs/claims/{thread}", f"refs/archive/{thread}")
    assert a.json("ps", "--remote") == []
    a.drive()
    assert field.refs("refs/claims") == []


def test_the_claim_of_a_killed_machine_passes_on_after_its_time(field: Field) -> None:
    a, b, c = (field.machine(name) for name in "abc")
    thread = a.begin(PLAIN)
    field.let("sleep 600")
    first = b.work(thread)
    with ended(first):
        field.wait_paid(1)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        field.let("")
        finished(c.work(thread))
    # The cut one, and each step once.
    assert field.paid() == 1 + 3
    assert field.log(thread)[-1].startswith("end: completed after 3 steps")


def test_a_setting_claims_each_run(field: Field, a: Machine, b: Machine) -> None:
    a.run("config", "set", "uwf.claim", "true")
    thread = a.begin(PLAIN)
    field.let_wait()
    first = a.start("thread", "run", thread)
    with ended(first):
        field.wait_paid(1)
        assert field.refs("refs/claims") == [f"refs/claims/{thread}"]
        # A claim is no thread: nobody fetches it.
        b.run("fetch")
        clone = str(b.home / ".uwf/store.git")
        listed = subprocess.run(
            ["git", "-C", clone, "for-each-ref"], check=True, capture_output=True, text=True
        )
        assert thread in listed.stdout
        assert "claims" not in listed.stdout
        field.go.touch()
        finished(first)
    assert field.log(thread)[-1].startswith("end: completed")


def test_a_hub_that_takes_no_claims_is_told(field: Field, a: Machine) -> None:
    thread = a.begin(PLAIN)
    hook = field.hub / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no claims here\nexit 1\n")
    hook.chmod(0o755)
    with a.work(thread) as process:
        _out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"it does not take a claim of thread {thread}: no claims here" in err
    assert field.paid() == 0


def test_git_takes_an_identical_claim_twice_so_each_is_new(field: Field) -> None:
    a, b = field.machine("a"), field.machine("b")
    ref = "refs/claims/01J7K9M2XNPQR5VWBCDF8G3H4T"
    for machine in (a, b):
        store = str(machine.home / ".uwf/store.git")
        argv = ["git", "-C", store, "hash-object", "-w", "--stdin"]
        ran = subprocess.run(argv, input="same", check=True, capture_output=True, text=True)
        lease = f"--force-with-lease={ref}:"
        push = ["git", "-C", store, "push", lease, str(field.hub), f"{ran.stdout.strip()}:{ref}"]
        # The second one is told that all is well, too.
        subprocess.run(push, check=True, capture_output=True)


def test_of_many_that_claim_at_once_one_gets_it(field: Field) -> None:
    machines = [field.machine(f"m{number}") for number in range(5)]
    thread = machines[0].begin(PLAIN)
    field.let_wait()
    processes = [each.work(thread) for each in machines]
    with ended(*processes):
        wait_until(
            lambda: sum(each.poll() == 4 for each in processes) == len(processes) - 1,
            "several hold the claim, or none was told",
        )
        assert field.paid() == 1
        field.go.touch()
        (winner,) = (each for each in processes if each.returncode is None)
        finished(winner)
    assert field.paid() == 3


@pytest.mark.parametrize(
    "content", ["", "[1]", "[" * 4000, '{"host": {"a": 1}, "role": 7}', '{"host": "\\u001b[2J"}']
)
def test_a_claim_of_a_stranger_is_listed_and_harms_nothing(field: Field, content: str) -> None:
    a = field.machine("a")
    thread = a.begin(PLAIN)
    argv = ["git", "-C", str(field.hub), "hash-object", "-w", "--stdin"]
    ran = subprocess.run(argv, input=content, check=True, capture_output=True, text=True)
    for name in (thread, "odd"):
        field.git("update-ref", f"refs/claims/{name}", ran.stdout.strip())
    assert [row["thread"] for row in a.json("ps", thread, "--remote")] == [thread]
    assert "\x1b[2J" not in a.run("ps", "--remote", "--format=text")
    with a.start("thread", "run", thread, "--claim") as process:
        # It looks like one that lives until the time to live is over.
        wait_until(lambda: field.refs("refs/claims"), "the claim is gone")
        process.terminate()
        _out, err = process.communicate()
    assert "internal error" not in err


def test_a_second_run_in_the_same_clone_leaves_the_first_alone(field: Field) -> None:
    a, b = field.machine("a"), field.machine("b")
    thread = a.begin(PLAIN)
    field.let_wait()
    first = b.work(thread)
    with ended(first):
        field.wait_paid(1)
        finished(b.work(thread), 4)
        assert field.refs("refs/claims") == [f"refs/claims/{thread}"]
        field.go.touch()
        finished(first)
    assert field.paid() == 3


def begin_split(field: Field) -> tuple[Machine, Machine, str]:
    """Return two machines and a thread, whose first agent is done at once, and no other."""
    a, b = field.machine("a"), field.machine("b")
    field.let(f"mkdir {field.place}/done 2>&- || while [ ! -e {field.go} ]; do sleep 0.05; done")
    return a, b, a.begin(SPLIT)


def assert_alone(
    field: Field,
    first: "subprocess.Popen[str]",
    begin_second: Callable[[], "subprocess.Popen[str]"],
    *,
    paid: int,
) -> None:
    """Check that the *first* command alone runs the thread."""
    with ended(first):
        field.wait_paid(paid)
        finished(begin_second(), 4)
        assert field.paid() == paid
        field.go.touch()
        finished(first)
    assert field.paid() == SPLIT_STEPS


def test_a_trunk_whose_branches_are_run_elsewhere_is_not_run(field: Field) -> None:
    a, b, thread = begin_split(field)
    assert_alone(field, a.start("drive", "--on", "local:2", *FAST), lambda: b.work(thread), paid=3)


def test_a_branch_of_a_thread_that_is_run_elsewhere_is_not_run(field: Field) -> None:
    a, b, thread = begin_split(field)

    def work_on_branch() -> "subprocess.Popen[str]":
        b.run("fetch")
        return b.work(b.json("thread", "show", thread)["branches"][0]["thread"])

    assert_alone(field, a.work(thread), work_on_branch, paid=5)


class Away(Hub):
    """A hub of claims in memory, whose answer is sometimes lost, and the look that follows."""

    def __init__(self, store: Store) -> None:
        self.store, self.beats, self.claims = store, 0, dict[str, Oid]()
        self._is_away = False

    def look(self) -> dict[str, Oid]:
        if self._is_away:
            self._is_away = False
            raise RemoteFailed(parse_remote_url("/hub", relative_to="/"), "it is away")
        return dict(self.claims)

    def swap(self, moves: Mapping[ThreadId, Move]) -> set[ThreadId]:
        moved = {each for each in moves if self.claims.get(CLAIMS + each) in moves[each][0]}
        for each in moved:
            new = moves[each][1]
            if new is None:
                del self.claims[CLAIMS + each]
            else:
                self.claims[CLAIMS + each] = name_blob(new)
        self.beats += bool(moved)
        if self.beats % 3 == 2 and moved:
            self._is_away = True
            raise RemoteFailed(parse_remote_url("/hub", relative_to="/"), "it is away")
        return moved


def test_a_lost_answer_loses_no_claim(world: World) -> None:
    hub, thread = Away(world.store), ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")
    keeper = Keeper(hub, ttl_s=0.06, poll_s=0.01)
    held = keeper.take(thread, on_look=lambda _refs: None)
    wait_until(lambda: hub.beats > 12 or held.is_lost.is_set(), "it is not renewed")
    assert not held.is_lost.is_set()
    keeper.release(held)
    assert hub.claims == {}


@pytest.mark.parametrize("backup", ["before", "taken over", "first", "older"])
def test_a_hub_that_is_restored_from_a_backup_loses_no_claim(world: World, backup: str) -> None:
    hub, thread = Away(world.store), ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")
    ref = CLAIMS + thread
    keeper, backups = Keeper(hub, ttl_s=0.06, poll_s=0.01), {"before": dict(hub.claims)}
    hub.claims[ref] = dead = name_blob(b"dead")
    backups["taken over"] = dict(hub.claims)
    held = keeper.take(thread, over=dead, on_look=lambda _refs: None)
    backups["first"] = dict(hub.claims)
    wait_until(lambda: hub.beats > 4, "it is not renewed")
    backups["older"] = dict(hub.claims)
    wait_until(lambda: hub.beats > 7, "it is not renewed")
    hub.claims, known = backups[backup], hub.beats
    wait_until(lambda: hub.beats > known + 4 or held.is_lost.is_set(), "it is not renewed")
    assert not held.is_lost.is_set()
    keeper.release(held)
    assert hub.claims == {}


class Silent(Away):
    """A hub where half of the connections hang for ever, in turn those of looks and of swaps."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.ends, self._asked = threading.Event(), 0

    def _hang(self) -> None:
        self._asked += 1
        if self._asked % 4 in {1, 2}:
            self.ends.wait()

    def look(self) -> dict[str, Oid]:
        self._hang()
        return dict(self.claims)

    def swap(self, moves: Mapping[ThreadId, Move]) -> set[ThreadId]:
        if all(before != {None} for before, _new in moves.values()):
            self._hang()
        self.beats = 0  # no answer is lost here
        return super().swap(moves)


def test_connections_that_hang_cost_no_claim_and_keep_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "_LEAST_PATIENCE_S", 0.05)
    hub, thread = Silent(world.store), ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")
    keeper, looks = Keeper(hub, ttl_s=0.3, poll_s=0.01), []
    held = keeper.take(thread, on_look=lambda refs: looks.append(refs[CLAIMS + thread]))
    wait_until(lambda: len(set(looks)) > 3, "it is not renewed")
    hub.ends.set()
    wait_until(lambda: len(set(looks)) > 5, "what hung has stopped it")
    assert not held.is_lost.is_set()
    hub.ends.clear()
    keeper.release(held)
    hub.ends.set()


class Slow(Away):
    """A hub where a renewal is under way until a deletion was refused."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.renews, self.refused = threading.Event(), threading.Event()
        self.renewed = threading.Event()

    def swap(self, moves: Mapping[ThreadId, Move]) -> set[ThreadId]:
        ((before, new),) = moves.values()
        is_renewal = before != {None} and new is not None
        if is_renewal:
            self.renews.set()
            self.refused.wait(0.3)
        self.beats = 0  # no answer is lost here
        moved = super().swap(moves)
        if is_renewal:
            self.renewed.set()
        elif not moved:
            self.refused.set()
            self.renewed.wait(0.3)
        return moved


@pytest.mark.parametrize("patience_s", [1.0, 0.05])
def test_a_release_during_a_renewal_leaves_no_claim(
    world: World, monkeypatch: pytest.MonkeyPatch, patience_s: float
) -> None:
    monkeypatch.setattr(claims, "_LEAST_PATIENCE_S", patience_s)
    hub = Slow(world.store)
    keeper = Keeper(hub, ttl_s=0.06, poll_s=0.01)
    held = keeper.take(ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T"), on_look=lambda _refs: None)
    assert hub.renews.wait(10)
    keeper.release(held)
    assert hub.renewed.wait(10)
    assert hub.claims == {}
