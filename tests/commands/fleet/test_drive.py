"""Everything at a hub on many processes: each agent is paid once, and nothing can be lost."""

import json
import time

import pytest
from commands.fleet.machines import FAST, PLAIN, SPLIT, SPLIT_STEPS, Field, Machine, ended, finished

DRIVE = ("drive", *FAST)


def test_two_processes_run_all_that_can_go_on(field: Field, a: Machine) -> None:
    a.begin(PLAIN)
    a.begin(SPLIT)
    end = a.drive("--on", "local:2")
    assert end["threads"] == {"completed": 1 + 6}
    assert end["steps"] == field.paid() == 3 + SPLIT_STEPS
    assert not field.refs("refs/claims")
    assert not field.refs("refs/threads")
    assert not a.json("verify")["problems"]
    # Nothing is left to do.
    assert a.drive()["steps"] == 0


def test_two_drivers_pay_each_agent_once(field: Field, a: Machine, b: Machine) -> None:
    a.begin(SPLIT)
    a.begin(SPLIT)
    field.let("sleep 0.3")
    b.run("fetch")
    drivers = [each.start(*DRIVE, "--on", "local:2", "--trust") for each in (a, b)]
    with ended(*drivers):
        for each in drivers:
            finished(each)
    assert field.paid() == 2 * SPLIT_STEPS
    assert not field.refs("refs/threads")


def test_a_killed_driver_costs_time_only(field: Field, a: Machine) -> None:
    thread = a.begin(SPLIT)
    field.let("sleep 0.5")
    first = a.start(*DRIVE, "--on", "local:2")
    with ended(first):
        field.wait_paid(2)
        first.kill()
        first.wait()
        end = a.drive("--on", "local:2")
    assert end["threads"] == {"completed": 6}
    assert field.log(thread)[-1].startswith("end: completed")


def test_threads_that_were_never_pushed_are_told_of(field: Field, a: Machine) -> None:
    thread = a.begin(PLAIN)
    field.git("update-ref", "-d", f"refs/threads/{thread}")

    with a.start(*DRIVE) as process:
        _out, err = process.communicate()

    assert "origin does not have 1 of this store's threads: `uwf push` first" in err


def test_only_the_named_thread_and_its_branches_are_driven(field: Field, a: Machine) -> None:
    thread = a.begin(SPLIT)
    other = a.begin(PLAIN)
    a.drive(thread)
    assert f"refs/archive/{thread}" in field.refs()
    assert f"refs/threads/{other}" in field.refs()
    assert field.paid() == SPLIT_STEPS


def test_a_damaged_thread_holds_up_no_other(field: Field, a: Machine) -> None:
    bad, good = a.begin(PLAIN), a.begin(PLAIN)
    next(a.home.rglob(f"refs/threads/{bad}")).write_text("1" * 40 + "\n")
    with a.start(*DRIVE) as driver:
        out, err = driver.communicate()
    assert json.loads(out)["threads"] == {"completed": 1, "damaged": 1}, err
    assert field.log(good)[-1].startswith("end: completed")
    assert err.count(bad) == 1


def give_newer_format(field: Field, ref: str) -> None:
    """Let the newest commit of *ref* at the hub be one of a newer uwf."""
    newer = field.place / "newer"
    commit = field.git("cat-file", "commit", ref)
    newer.write_text(commit.replace("Uwf-Format: 2", "Uwf-Format: 3"))
    tip = field.git("hash-object", "-t", "commit", "-w", str(newer)).strip()
    field.git("update-ref", ref, tip)


def test_a_thread_that_the_fetch_refuses_is_counted_and_the_refusal_is_told(
    field: Field, a: Machine, b: Machine
) -> None:
    thread, other = a.begin(PLAIN), a.begin(PLAIN)
    give_newer_format(field, f"refs/threads/{thread}")

    told = finished(b.start(*DRIVE, "--trust", thread, other), status=1)
    assert f"{thread} was not submitted" in told
    assert f"refs/archive/{other}" in field.refs()
    for words in ((), (thread,)):
        assert f"{thread} was not submitted" in finished(b.start(*DRIVE, *words), status=1)
    told = finished(b.work(thread), status=5)
    assert f"refs/threads/{thread} of origin was not taken over" in told


def test_a_branch_that_the_fetch_refuses_is_not_paid_again(
    field: Field, a: Machine, b: Machine
) -> None:
    thread = a.begin(SPLIT)
    a.run("thread", "run", thread, "--max-steps", "2")
    a.run("push")
    ref = f"refs/threads/{(field.place / 'paid').read_text().split()[1]}"
    give_newer_format(field, ref)

    assert f"{ref} of origin was not taken over" in finished(b.work(thread), status=5)

    assert field.paid() == 2


def test_what_a_worker_refused_is_tried_again(field: Field, a: Machine) -> None:
    a.begin(PLAIN)
    (a.home / "shy.py").write_text(
        "from concurrent.futures import Future\n"
        "from uwf_git.commands.fleet.shared_drive import Done\n"
        "class Shy:\n"
        "    refusals = ['refs-refused']\n"
        "    def submit(self, run, job):\n"
        "        future, said = Future(), self.refusals and self.refusals.pop()\n"
        "        future.set_result(Done(job.thread, '', said) if said else run(job))\n"
        "        return future\n"
    )
    assert a.drive("--on", "shy:Shy", "--ttl", "1")["threads"] == {"completed": 1}


def test_a_thread_is_started_and_driven_on_machines_at_once(field: Field, a: Machine) -> None:
    path = a.home / "flow.yaml"
    path.write_text(SPLIT)
    agent = ("--agent", str(field.agent))
    out = a.run("run", str(path), "-p", "Do it.", *agent, "--on", "local:2")
    assert json.loads(out)["threads"] == {"completed": 6}
    assert field.paid() == SPLIT_STEPS
    assert not field.refs("refs/threads")


def test_no_branch_is_paid_that_another_has_made_needless(field: Field, a: Machine) -> None:
    node = "    - {type: agent, agentId: one}\n"
    a.begin(f"name: any\nroot:\n  type: parallel\n  join: any\n  merge: last\n  nodes:\n{node * 6}")
    assert a.drive("--on", "local:1")["stopped"] == "idle"
    assert not field.refs("refs/threads")
    assert field.paid() < 6


# What a driver submits: policies, limits and trust hold as on one machine.


def test_a_command_that_is_not_trusted_is_not_sent(field: Field, a: Machine, b: Machine) -> None:
    thread = a.begin(PLAIN)
    b.run("fetch")
    with b.start(*DRIVE) as process:
        out, err = process.communicate()
    assert process.returncode == 1
    assert f"{thread} was not submitted" in err
    assert json.loads(out)["threads"] == {"ready": 1}
    assert field.paid() == 0
    assert b.drive("--trust")["threads"] == {"completed": 1}


def test_a_limit_of_steps_holds_over_branches_on_machines(field: Field, a: Machine) -> None:
    a.begin(SPLIT, "--max-steps", "3")
    field.let("sleep 0.2")
    a.drive("--on", "local:3")
    assert field.paid() == 3


@pytest.mark.parametrize(
    ("policy", "ends"),
    [("join: any", "completed"), ("onError: continue", "completed"), ("retries: 0", "split")],
)
def test_policies_of_branches_hold_on_machines(field: Field, policy: str, ends: str) -> None:
    a = field.machine("a")
    thread = a.begin(SPLIT.replace("merge: last", f"merge: last\n      {policy}", 1))
    place = field.place
    # The second agent of all fails: it plays a branch.
    field.let(
        f"mkdir {place}/first 2>/dev/null || {{ mkdir {place}/second 2>/dev/null && exit 7; }}"
    )
    a.drive("--on", "local:2", status=0 if ends == "completed" else 3)
    assert a.json("thread", "show", thread)["status"] == ends


def test_a_thread_that_waits_rests_and_an_answer_brings_it_on(field: Field, a: Machine) -> None:
    thread = a.begin(PLAIN, "--agent", "one=human")
    assert a.drive()["threads"] == {"waiting": 1}
    a.run("thread", "answer", thread, "--meta", "1")
    assert a.drive()["threads"] == {"waiting": 1}
    # Begun, asked, answered, asked for the next one.
    assert len(field.log(thread)) == 4


def test_a_driver_that_waits_for_limits_ends_when_none_is_to_come(field: Field) -> None:
    a, b = field.machine("a"), field.machine("b")
    # A limit that will be over when the driver begins.
    over_ms = int(time.time() * 1000) + 1000
    told = f'{{"kind": "rate-limit", "resetAt": {over_ms}}}'
    field.let(f"echo '{told}' > $UWF_STEP_DIR/failure.json; exit 1")
    thread = a.begin(PLAIN)
    a.run("thread", "step", thread, status=3)
    assert a.json("thread", "show", thread)["status"] == "waiting"
    a.run("push")
    b.run("fetch")
    # This one trusts no command of it.
    assert b.drive("--wait", status=1)["threads"] == {"waiting": 1}
