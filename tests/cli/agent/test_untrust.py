from cli.program import Uwf


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


def test_agents_of_a_thread_lose_it(uwf: Uwf) -> None:
    thread = uwf.begun(uwf.agent())
    uwf.json("agent", "untrust", "--thread", thread)

    assert uwf.json("agent", "trusted") == []
    assert uwf("thread", "step", thread).status == 1
