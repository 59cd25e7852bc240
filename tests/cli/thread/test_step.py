"""`uwf thread step`, as in seed 000 section 1.3."""

from cli.program import Uwf


def test_command_that_came_from_elsewhere_is_shown_and_not_run(uwf: Uwf) -> None:
    # As after a fetch: the thread is here, and its command is not trusted.
    ran_file = uwf.place / "ran"
    thread = uwf.begun(uwf.agent(f'touch {ran_file}; echo \'{{"meta": {{"text": "x"}}}}\''))
    uwf.json("agent", "untrust", "--thread", thread)

    refused = uwf("thread", "step", thread).refused(1, str(uwf.place / "agent"))
    assert "--trust" in refused.err.splitlines()[1]
    assert not ran_file.exists()
    assert uwf.json("thread", "step", thread, "--trust")["role"] == "writer"
    assert ran_file.exists()
    assert [row["command"] for row in uwf.json("agent", "trusted")] == [str(uwf.place / "agent")]


def test_a_clock_that_jumped_ahead_pays_no_agent(uwf: Uwf, thread: str) -> None:
    agent = uwf.agent("touch paid", name="payer")

    ran = uwf("thread", "step", thread, "--agent", agent, now_ms=lambda: (1 << 34) * 1000)
    ran.refused(1, "after the year 2514")
    assert not (uwf.place / "paid").exists()
    assert uwf.json("thread", "show", thread)["status"] == "ready"
