from cli.program import Uwf


def test_hint_reaches_the_agent_and_the_log(uwf: Uwf) -> None:
    thread = uwf.begun(uwf.agent("exit 7"))
    assert uwf("thread", "step", thread).status == 3
    ran = uwf("thread", "run", thread)
    assert ran.status == 1
    assert f"uwf thread retry {thread}" in ran.err

    retried = uwf.json("thread", "retry", thread, "-m", "the key is in .env")

    assert list(retried) == ["workflow", "thread", "head", "status"]
    assert retried["status"] == "ready"
    context = uwf.json("thread", "context", thread)
    assert (context["hint"], context["attempt"]) == ("the key is in .env", 2)
    prompt = uwf("thread", "context", thread, "--prompt").out
    assert "<hint>\nthe key is in .env\n</hint>" in prompt
    assert "## To be tried again" in uwf("thread", "read", thread).out

    uwf.agent()
    assert uwf.json("thread", "step", thread)["status"] == "ready"
    assert uwf.json("thread", "context", thread)["hint"] is None
