"""Everything at a hub on many processes: each agent is paid once, and nothing can be lost."""

import json
from pathlib import Path

import pytest
from fleet.machines import FAST, PLAIN, SPLIT, SPLIT_STEPS, Field, Machine, ended

DRIVE = ("drive", *FAST)


def driven(machine: Machine, *words: str, status: int = 0) -> dict[str, object]:
    found: dict[str, object] = json.loads(machine.run(*DRIVE, *words, status=status))
    return found


def test_two_processes_run_all_that_can_go_on(field: Field) -> None:
    a = field.machine("a")
    a.begin(PLAIN)
    a.begin(SPLIT)
    end = driven(a, "--on", "local:2")
    assert end["threads"] == {"completed": 1 + 6}
    assert end["steps"] == field.paid() == 3 + SPLIT_STEPS
    assert not field.refs("refs/claims")
    assert not field.refs("refs/threads")
    assert not a.json("verify")["problems"]
    # Nothing is left to do.
    assert driven(a)["steps"] == 0


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
        end = driven(a, "--on", "local:2")
    assert end["threads"] == {"completed": 6}
    assert field.log(thread)[-1].startswith("end: completed")


def test_a_command_that_is_not_trusted_is_not_sent(field: Field) -> None:
    a, b = field.machine("a"), field.machine("b")
    thread = a.begin(PLAIN)
    b.run("fetch")
    with b.start(*DRIVE) as process:
        out, err = process.communicate()
    assert process.returncode == 0
    assert f"{thread} was not submitted" in err
    assert json.loads(out)["threads"] == {"ready": 1}
    assert field.paid() == 0
    assert driven(b, "--trust")["threads"] == {"completed": 1}


def test_a_limit_of_steps_holds_over_branches_on_machines(field: Field) -> None:
    a = field.machine("a")
    a.begin(SPLIT, "--max-steps", "3")
    field.let("sleep 0.2")
    driven(a, "--on", "local:3")
    assert field.paid() == 3


@pytest.mark.parametrize(
    ("policy", "ends"),
    [("join: any", "completed"), ("onError: continue", "completed"), ("retries: 0", "split")],
)
def test_policies_of_branches_hold_on_machines(field: Field, policy: str, ends: str) -> None:
    a = field.machine("a")
    flow = SPLIT.replace("merge: last", f"merge: last\n      {policy}", 1)
    thread = a.begin(flow)
    place = field.place
    # The second agent of all fails: it plays a branch.
    field.let(
        f"mkdir {place}/first 2>/dev/null || {{ mkdir {place}/second 2>/dev/null && exit 7; }}"
    )
    driven(a, "--on", "local:2", status=0 if ends == "completed" else 3)
    assert a.json("thread", "show", thread)["status"] == ends


def test_a_thread_that_waits_rests_and_an_answer_brings_it_on(field: Field) -> None:
    a = field.machine("a")
    thread = a.begin(PLAIN, "--agent", "one=human")
    assert driven(a)["threads"] == {"waiting": 1}
    a.run("thread", "answer", thread, "--meta", "1")
    assert driven(a)["threads"] == {"waiting": 1}
    # Begun, asked, answered, asked for the next one.
    assert len(field.log(thread)) == 4


def test_only_the_named_thread_and_its_branches_are_driven(field: Field) -> None:
    a = field.machine("a")
    thread = a.begin(SPLIT)
    other = a.begin(PLAIN)
    driven(a, thread)
    assert f"refs/archive/{thread}" in field.refs()
    assert f"refs/threads/{other}" in field.refs()
    assert field.paid() == SPLIT_STEPS


def test_a_scheduler_elsewhere_needs_tls(field: Field) -> None:
    a = field.machine("a")
    with a.start("drive", "--on", "tcp://192.0.2.1:8786") as process:
        _out, err = process.communicate()
    assert process.returncode == 1
    assert "whoever reaches a scheduler runs anything" in err
    for address in ("local:0", "nothing:there", "nonsense"):
        with a.start("drive", "--on", address) as process:
            _out, err = process.communicate()
        assert process.returncode == 2, err
        assert "names no executor" in err


def test_one_module_imports_dask() -> None:
    package = Path(__file__).parents[2] / "uwf_git"
    found = [each for each in package.rglob("*.py") if "distributed import" in each.read_text()]
    assert [each.name for each in found] == ["dask.py"]
