import json

from cli.program import Uwf


def test_poke_takes_the_newest_step_again(uwf: Uwf) -> None:
    thread = uwf.begun()
    old = uwf.json("thread", "step", thread)
    other = uwf.agent("""echo '{"meta": {"text": "shorter"}}'; echo log >&2""", name="other")

    ran = uwf("thread", "poke", thread, "-m", "too long", "--agent", other)

    assert ran.status == 0
    assert json.loads(ran.out).keys() == old.keys()
    assert ran.err == "log\n"
    stepped = uwf.json("thread", "show", thread)
    assert stepped["head"] != old["head"]
    assert (stepped["status"], stepped["lastNode"]) == ("ready", "writer")
    told = uwf("thread", "read", thread).out
    headings = [line for line in told.splitlines() if line.startswith("## ")]
    assert headings == [
        "## 1. writer: What was said. (taken back)",
        "## Newest step taken back",
        "## 1. writer",
    ]


def test_poke_without_a_step_only_takes_back(uwf: Uwf) -> None:
    thread = uwf.begun()
    start = uwf.json("thread", "show", thread)["head"]
    uwf.json("thread", "step", thread)

    poked = uwf.json("thread", "poke", thread, "--no-step", "-m", "shorter")

    assert list(poked) == ["workflow", "thread", "head", "status"]
    assert (poked["head"], poked["status"]) == (start, "ready")
    assert uwf.json("thread", "context", thread)["hint"] == "shorter"
    again = uwf("thread", "poke", thread)
    assert again.status == 1
    assert "has no step to take again" in again.err


def test_options_of_a_step_that_is_not_taken_are_refused(uwf: Uwf) -> None:
    thread = uwf.begun()
    head = uwf.json("thread", "step", thread)["head"]

    for option in (("--agent", "x"), ("--workdir", "/"), ("--trust",)):
        ran = uwf("thread", "poke", thread, "--no-step", *option)
        assert (ran.status, ran.out) == (2, "")
        assert "--no-step takes none" in ran.err

    assert uwf.json("thread", "show", thread)["head"] == head
