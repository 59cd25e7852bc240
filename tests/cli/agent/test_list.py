from cli.program import Uwf


def test_agents_of_this_machine_are_listed(uwf: Uwf) -> None:
    uwf.agent('echo "claude 2.0.1"', name="claude")
    path = {**uwf.session.environ, "PATH": f"{uwf.place}:/usr/bin:/bin"}
    uwf.json("config", "set", "agent", "uwf-claude --model opus")

    rows = {row["agent"]: row for row in uwf.json("agent", "list", environ=path)}
    assert rows["uwf-claude"] == {
        "agent": "uwf-claude",
        "default": True,
        "installed": True,
        "version": "2.0.1",
        "path": f"{uwf.place}/claude",
        "about": "Claude Code",
    }
    assert rows["uwf-llm"]["installed"]
    assert not rows["uwf-llm"]["default"]
    assert "uwf-codex" not in rows


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
