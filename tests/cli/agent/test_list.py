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


def test_agents_that_are_not_here_are_listed_with_how_to_get_them(uwf: Uwf) -> None:
    nowhere = {**uwf.session.environ, "PATH": "/nowhere"}
    rows = {row["agent"]: row for row in uwf.json("agent", "list", "--all", environ=nowhere)}

    assert not rows["uwf-codex"]["installed"]
    assert rows["uwf-codex"]["about"] == "OpenAI Codex: npm install -g @openai/codex"
