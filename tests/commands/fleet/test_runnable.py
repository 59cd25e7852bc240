"""What a driver submits: policies, limits and trust hold as on one machine."""

import json
import time

import pytest
from commands.fleet.machines import FAST, PLAIN, SPLIT, Field

DRIVE = ("drive", *FAST)


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
    assert b.drive("--trust")["threads"] == {"completed": 1}


def test_a_limit_of_steps_holds_over_branches_on_machines(field: Field) -> None:
    a = field.machine("a")
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
    flow = SPLIT.replace("merge: last", f"merge: last\n      {policy}", 1)
    thread = a.begin(flow)
    place = field.place
    # The second agent of all fails: it plays a branch.
    field.let(
        f"mkdir {place}/first 2>/dev/null || {{ mkdir {place}/second 2>/dev/null && exit 7; }}"
    )
    a.drive("--on", "local:2", status=0 if ends == "completed" else 3)
    assert a.json("thread", "show", thread)["status"] == ends


def test_a_thread_that_waits_rests_and_an_answer_brings_it_on(field: Field) -> None:
    a = field.machine("a")
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
    assert b.drive("--wait")["threads"] == {"waiting": 1}
