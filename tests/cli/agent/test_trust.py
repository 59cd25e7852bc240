from cli.program import Uwf
from commands.world import DEMO


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


def test_what_may_run_is_listed_with_its_settings(uwf: Uwf) -> None:
    long = "x" * 300
    agents = (
        f"name: demo\nagentOverrides:\n  checker: {{command: c, timeout: 9}}\n  writer: '{long}'"
    )
    uwf.json("workflow", "put", uwf.file(DEMO.replace("name: demo", agents)))

    rows = sorted(uwf.json("agent", "trusted"), key=lambda row: str(row["command"]))
    assert rows[0] == {
        "command": "c",
        "settings": {"timeout": 9},
        "files": None,
        "directory": None,
        "where": "store",
    }
    assert rows[1]["command"] == long


def test_long_command_is_shown_whole_on_a_narrow_terminal(uwf: Uwf) -> None:
    uwf.json("agent", "trust", f"{'x' * 300} 'line\nbreak'")
    told = uwf("agent", "trusted", "--format", "text", stdout_is_tty=True).out
    assert "x" * 300 in told
    assert "  break'\n" in told


def test_relative_path_is_shown_as_the_file_that_it_means(uwf: Uwf) -> None:
    uwf.json("agent", "trust", "./agent --fast")
    row = uwf.json("agent", "trusted")[0]
    assert row["files"] == [f"{uwf.place}/agent"]
    assert row["directory"] == str(uwf.place)


def test_nothing_is_trusted_at_first(uwf: Uwf) -> None:
    assert uwf.json("agent", "trusted") == []
    assert uwf("agent", "trusted", "--format", "text").out == ""


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
