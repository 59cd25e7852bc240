"""uwf-acp drives an agent that was made with the official library of the protocol."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from agentkit.conftest import Turn

from uwf_git.agentkit.adapters.acp import AcpAdapter
from uwf_git.agentkit.turn import AdapterQuestion

AGENT = Path(__file__).parent / "official_acp_agent.py"
FITS = "---\nwords: 4\n---\nFour words.\n"


def command(place: Path, *words: str) -> str:
    return shlex.join([sys.executable, str(AGENT), str(place / "agent.log"), *words])


def read_log(place: Path) -> dict[str, Any]:
    """Return the last entry of each kind in the agent's log."""
    found: dict[str, Any] = {}
    for line in (place / "agent.log").read_text().splitlines():
        found |= json.loads(line)
    return found


def test_agent_of_the_official_library_plays_a_turn(turn: Turn) -> None:
    ran = turn.installed("uwf-acp", command(turn.place, FITS), turn.thread)

    assert ran.status == 0, ran.err
    assert json.loads(ran.out) == {
        "meta": {"words": 4},
        "content": "Four words.\n",
        "usage": {"inputTokens": 11, "outputTokens": 7},
        "session": "s1",
        "rung": "front-matter",
    }
    log = read_log(turn.place)
    assert log["version"] == 1
    assert (log["cwd"], log["servers"]) == (str(turn.place), [])
    assert log["outcome"] == {"outcome": "selected", "optionId": "once", "_meta": None}
    assert "one two three" in log["prompt"][0]


def test_agent_is_corrected_in_its_session_and_gets_our_tools(turn: Turn) -> None:
    told = command(turn.place, "No fields.", FITS)
    ran = turn.installed("uwf-acp", told, turn.thread, UWF_THREAD_ID=turn.thread)

    assert json.loads(ran.out)["rung"] == "front-matter-corrected"
    log = read_log(turn.place)
    assert log["servers"] == ["uwf"]
    assert "Your work is done and kept" in log["prompt"][0]


def test_session_of_an_earlier_turn_is_loaded(tmp_path: Path) -> None:
    adapter = AcpAdapter()
    question = AdapterQuestion(
        prompt="Go on.",
        session="s0",
        workdir=str(tmp_path),
        settings={"command": command(tmp_path, "Gone on.")},
        environ=dict(os.environ),
    )
    try:
        answer = adapter.ask(question)
    finally:
        adapter.close()

    assert (answer.text, answer.session) == ("Gone on.", "s0")
    assert read_log(tmp_path)["loaded"] == "s0"
    assert [event["type"] for event in answer.trace] == ["message", "tool", "permission"]
    tool = answer.trace[1]
    assert (tool["name"], tool["ok"], tool["output"]) == ("Run tests", True, {"exit": 0})
