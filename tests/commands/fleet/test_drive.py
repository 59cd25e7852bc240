"""Everything at a hub on many processes: each agent is paid once, and nothing can be lost."""

import json

from commands.fleet.machines import FAST, PLAIN, SPLIT, SPLIT_STEPS, Field, ended

DRIVE = ("drive", *FAST)


def test_two_processes_run_all_that_can_go_on(field: Field) -> None:
    a = field.machine("a")
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


def test_two_drivers_pay_each_agent_once(field: Field) -> None:
    a, b = field.machine("a"), field.machine("b")
    a.begin(SPLIT)
    a.begin(SPLIT)
    field.let("sleep 0.3")
    b.run("fetch")
    drivers = [each.start(*DRIVE, "--on", "local:2", "--trust") for each in (a, b)]
    with ended(*drivers):
        for each in drivers:
            _out, err = each.communicate()
            assert each.returncode == 0, err
    assert field.paid() == 2 * SPLIT_STEPS
    assert not field.refs("refs/threads")


def test_a_killed_driver_costs_time_only(field: Field) -> None:
    a = field.machine("a")
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


def test_threads_that_were_never_pushed_are_told_of(field: Field) -> None:
    a = field.machine("a")
    thread = a.begin(PLAIN)
    field.git("update-ref", "-d", f"refs/threads/{thread}")

    with a.start(*DRIVE) as process:
        _out, err = process.communicate()

    assert "origin does not have 1 of this store's threads: `uwf push` first" in err


def test_only_the_named_thread_and_its_branches_are_driven(field: Field) -> None:
    a = field.machine("a")
    thread = a.begin(SPLIT)
    other = a.begin(PLAIN)
    a.drive(thread)
    assert f"refs/archive/{thread}" in field.refs()
    assert f"refs/threads/{other}" in field.refs()
    assert field.paid() == SPLIT_STEPS


def test_a_damaged_thread_holds_up_no_other(field: Field) -> None:
    a = field.machine("a")
    bad, good = a.begin(PLAIN), a.begin(PLAIN)
    next(a.home.rglob(f"refs/threads/{bad}")).write_text("1" * 40 + "\n")
    with a.start(*DRIVE) as driver:
        out, err = driver.communicate()
    assert json.loads(out)["threads"] == {"completed": 1, "damaged": 1}, err
    assert field.log(good)[-1].startswith("end: completed")
    assert err.count(bad) == 1


def test_a_thread_is_started_and_driven_on_machines_at_once(field: Field) -> None:
    a = field.machine("a")
    path = a.home / "flow.yaml"
    path.write_text(SPLIT)
    agent = ("--agent", str(field.agent))
    out = a.run("run", str(path), "-p", "Do it.", *agent, "--on", "local:2")
    assert json.loads(out)["threads"] == {"completed": 6}
    assert field.paid() == SPLIT_STEPS
    assert not field.refs("refs/threads")
