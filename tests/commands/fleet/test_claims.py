"""Claims: one of those who claim a thread gets it, and a dead one passes on."""

import os
import signal
import subprocess

from commands.at_work import wait_until
from commands.fleet.machines import PLAIN, Field, ended


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
        with c.work(thread) as second:
            _out, err = second.communicate()
        assert second.returncode == 4
        assert "renews its claim" in err
        field.go.touch()
        _out, err = first.communicate()
        assert first.returncode == 0, err
    assert field.paid() == 3
    assert a.run("ps", "--remote", "--format=text").strip() == ""


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
        with c.work(thread) as second:
            _out, err = second.communicate()
        assert second.returncode == 0, err
    # The cut one, and each step once.
    assert field.paid() == 1 + 3
    assert field.log(thread)[-1].startswith("end: completed after 3 steps")


def test_a_setting_claims_each_run(field: Field) -> None:
    a, b = field.machine("a"), field.machine("b")
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
        _out, err = first.communicate()
        assert first.returncode == 0, err
    assert field.log(thread)[-1].startswith("end: completed")


def test_a_hub_that_takes_no_claims_is_told(field: Field) -> None:
    a = field.machine("a")
    thread = a.begin(PLAIN)
    hook = field.hub / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    with a.work(thread) as process:
        _out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"it does not take a claim of thread {thread}" in err
    assert field.paid() == 0
