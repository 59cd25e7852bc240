from cli.program import Uwf


def test_agents_of_a_thread_are_trusted(uwf: Uwf) -> None:
    agent = uwf.agent()
    thread = uwf.begun(agent)
    uwf.json("agent", "untrust", agent)
    assert uwf("thread", "step", thread).status == 1

    assert uwf.json("agent", "trust", "--thread", thread[:20]) == {"trusted": [{"command": agent}]}
    assert uwf("thread", "step", thread).status == 0


def test_long_command_is_shown_whole_on_a_narrow_terminal(uwf: Uwf) -> None:
    uwf.json("agent", "trust", f"{'x' * 300} 'line\nbreak'")
    told = uwf("agent", "trusted", "--format", "text", stdout_is_tty=True).out
    assert "x" * 300 in told
    assert "  break'\n" in told


def test_trust_is_taken_away(uwf: Uwf) -> None:
    uwf.json("agent", "trust", "a")
    uwf.json("agent", "trust", "b")

    assert uwf.json("agent", "untrust", "a") == {
        "untrusted": [
            {"command": "a", "settings": None, "files": None, "directory": None, "where": "store"}
        ]
    }
    assert [row["command"] for row in uwf.json("agent", "trusted")] == ["b"]
    assert uwf("agent", "untrust", "a").status == 1
