from cli.program import Uwf


def test_resumed_thread_goes_on(uwf: Uwf) -> None:
    thread = uwf.begun()
    uwf.json("thread", "pause", thread)

    resumed = uwf.json("thread", "resume", thread, "-m", "the plan is good")

    assert list(resumed) == ["workflow", "thread", "head", "status"]
    assert resumed["status"] == "ready"
    assert uwf.json("thread", "step", thread)["role"] == "writer"
    told = uwf("thread", "read", thread).out
    assert "## Resumed\n" in told
    assert "the plan is good" in told


def test_thread_that_is_not_paused_is_not_resumed(uwf: Uwf) -> None:
    thread = uwf.begun()

    ran = uwf("thread", "resume", thread)

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"error: thread {thread} is ready, not paused\nhint: ")
