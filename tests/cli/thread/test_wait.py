import json

import pytest
from cli.program import Uwf


def test_waiting_thread_names_its_role(uwf: Uwf) -> None:
    thread = uwf.begun("human")
    uwf.json("thread", "step", thread)

    [row] = uwf.json("thread", "wait", thread)

    assert (row["status"], row["waiting"]) == ("waiting", {"role": "writer"})


@pytest.mark.parametrize(
    ("ends", "status"),
    [(["killed"], 1), (["failed"], 3), (["ready", "killed"], 1), (["killed", "failed"], 3)],
)
def test_exit_status_tells_the_worst(ends: list[str], status: int, uwf: Uwf) -> None:
    threads = []
    for end in ends:
        threads.append(uwf.begun(uwf.agent("exit 9") if end == "failed" else uwf.agent()))
        if end == "killed":
            uwf.json("thread", "kill", threads[-1])
        if end == "failed":
            assert uwf("thread", "step", threads[-1]).status == 3

    ran = uwf("thread", "wait", *threads)

    assert [row["status"] for row in json.loads(ran.out)] == ends
    assert ran.status == status
    assert [line[:6] for line in ran.err.splitlines()] == ["next: "] * ends.count("failed")


@pytest.mark.parametrize(
    ("words", "status"), [([], 2), (["01J", "--timeout", "-1"], 2), (["01J"], 1), (["7", "x y"], 1)]
)
def test_wrong_usage_is_reported(words: list[str], status: int, uwf: Uwf) -> None:
    ran = uwf("thread", "wait", *words)

    assert (ran.status, ran.out) == (status, "")
    assert ran.err.startswith("error: ")
