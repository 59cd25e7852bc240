"""One thread of a hub on several machines: who claims it runs it, and nobody pays twice."""

from commands.fleet.machines import PLAIN, SPLIT, SPLIT_STEPS, Field, ended


def test_a_machine_that_has_nothing_runs_a_thread_to_its_end(field: Field) -> None:
    a = field.machine("a")
    thread = a.begin(SPLIT)
    b = field.machine("b")
    with b.work(thread) as process:
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
