from cli.program import Uwf


def test_command_is_trusted(uwf: Uwf) -> None:
    assert uwf.json("agent", "trust", "a --b") == {"trusted": [{"command": "a --b"}]}
    assert [row["command"] for row in uwf.json("agent", "trusted")] == ["a --b"]


def test_agents_of_a_thread_are_trusted(uwf: Uwf) -> None:
    agent = uwf.agent()
    thread = uwf.begun(agent)
    uwf.json("agent", "untrust", agent)
    assert uwf("thread", "step", thread).status == 1

    assert uwf.json("agent", "trust", "--thread", thread[:20]) == {"trusted": [{"command": agent}]}
    assert uwf("thread", "step", thread).status == 0


def test_missing_or_unknown_target_is_refused(uwf: Uwf) -> None:
    assert uwf("agent", "trust").status == 2
    assert uwf("agent", "trust", "--workflow", "nope").status == 1
    assert uwf("agent", "trust", "\udcff").status == 1
