"""Many threads in the background at once; tests/bench/drivers.py does it with hundreds."""

import json

from cli.program import ANSWER, Uwf

CROWD = 20


def test_many_threads_in_the_background_finish_with_nothing_lost(uwf: Uwf) -> None:
    # Each agent waits until all drivers run, so that they work at the same time.
    go = uwf.place / "go"
    once = f"echo $UWF_THREAD_ID $UWF_ROLE >>ran; until [ -e {go} ]; do sleep 0.1; done; {ANSWER}"
    agent = uwf.agent(once)
    threads = [uwf.begun(agent) for _ in range(CROWD)]
    starters = [uwf.process("thread", "run", thread, "--background") for thread in threads]
    drivers = []
    for starter in starters:
        out, err = starter.communicate(timeout=120)
        assert starter.returncode == 0, err
        drivers.append(json.loads(out))
    waiting = uwf("thread", "wait", *threads, "--timeout", "0")

    go.touch()
    rows = uwf.json("thread", "wait", *threads, "--timeout", "120")

    assert (waiting.status, waiting.out) == (4, "")
    assert len({driver["pid"] for driver in drivers}) == CROWD
    assert {row["thread"] for row in rows} == set(threads)
    assert {row["status"] for row in rows} == {"completed"}
    assert [row["depth"] for row in uwf.json("thread", "list", "--all")] == [2] * CROWD
    # No agent ran twice.
    assert len((uwf.place / "ran").read_text().splitlines()) == 2 * CROWD
    assert uwf("verify").status == 0
