import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agentkit.adapters.replay import read_made_up
from agentkit.adapters.telling import tell_answer
from agentkit.conftest import Turn, failure_of
from agents.conftest import Lives

from uwf_git.agentkit.adapters import acp
from uwf_git.agentkit.adapters.acp import AcpAdapter, AcpClient
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion
from uwf_git.store.store import create_store

AGENT = Path(__file__).parent / "acp_agent.py"
END = {"result": {"stopReason": "end_turn"}}
PERMISSION: dict[str, Any] = {
    "method": "session/request_permission",
    "params": {
        "sessionId": "s1",
        "toolCall": {"toolCallId": "call_1", "title": "rm -r build", "kind": "execute"},
        "options": [
            {"optionId": "always", "name": "Always", "kind": "allow_always"},
            {"optionId": "once", "name": "Once", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ],
    },
}


@dataclass
class Agent:
    """A scripted agent, the adapter that drives it, and the messages that the agent received."""

    place: Path
    lives: Lives
    adapter: AcpAdapter = field(default_factory=AcpAdapter)

    def command(self, *turns: list[dict[str, Any]], **script: Any) -> str:
        path = self.place / "script.json"
        path.write_text(json.dumps({"turns": turns, **script}))
        return f"{sys.executable} {AGENT} {path} {self.place / 'log'}"

    def question(self, command: str, prompt: str = "Do it.", **more: Any) -> AdapterQuestion:
        settings = {"command": command, **more.pop("settings", {})}
        environ = {**os.environ, **more.pop("environ", {})}
        given = {"workdir": str(self.place), "settings": settings, "environ": environ}
        return AdapterQuestion(prompt=prompt, **{**given, **more})

    def ask(self, *turns: list[dict[str, Any]], **more: Any) -> AdapterAnswer:
        script = {name: more.pop(name) for name in ("initialize", "new", "load") if name in more}
        return self.adapter.ask(self.question(self.command(*turns, **script), **more))

    def log(self) -> list[Any]:
        return [json.loads(line) for line in (self.place / "log").read_text().splitlines()]

    def tell_received(self) -> list[str]:
        """Tell what it was asked, told and answered, without what every message has."""
        found = []
        for each in self.log():
            message = {key: each[key] for key in ("params", "result", "error") if key in each}
            if message:
                text = json.dumps(message, ensure_ascii=False)
                text = text.replace(str(self.place), "PLACE").replace(sys.executable, "PYTHON")
                found.append(f"    < {each.get('method', 'answer')} {text}\n")
        return found

    def told(self, method: str) -> list[Any]:
        return [each["params"] for each in self.log() if each.get("method") == method]

    def pids(self) -> list[int]:
        return [value for each in self.log() for key, value in each.items() if key in PIDS]

    def living(self) -> list[int]:
        return [pid for pid in self.pids() if self.lives(pid)]


PIDS = ("started", "spawned")


@pytest.fixture
def agent(tmp_path: Path, lives: Lives) -> Iterator[Agent]:
    """Yield a scripted agent; no process may be left when its adapter was closed."""
    made = Agent(tmp_path, lives)
    yield made
    made.adapter.close()
    if (tmp_path / "log").exists():
        assert made.living() == []


def test_questions_are_asked_and_answered_as_ever(
    tmp_path: Path, golden: Callable[[str, str], None], lives: Lives
) -> None:
    told: list[str] = []
    for number, (case, given) in enumerate(read_made_up("acp", "questions").items()):
        place = tmp_path / str(number)
        place.mkdir()
        script = json.loads(json.dumps(given).replace("PLACE", str(place)))
        agent = Agent(place, lives)
        told += [f"{case}\n", *tell_answer(partial(agent.ask, *script.pop("turns"), **script))]
        agent.adapter.close()
        told += agent.tell_received()

    golden("programs/acp.txt", "".join(told))


def spent(amount: float) -> dict[str, Any]:
    cost = {"amount": amount, "currency": "USD"}
    return {"update": {"sessionUpdate": "usage_update", "cost": cost}}


def test_agent_stands_in_the_work_directory_and_sees_only_what_it_may(agent: Agent) -> None:
    secret = {"SOME_SECRET": "x", "CLAUDECODE": "1", "GEMINI_API_KEY": "k", "MORE": "m"}
    agent.ask([{"say": "x"}, END], environ=secret, settings={"env": "MORE"})

    started = agent.log()[0]
    assert started["cwd"] == str(agent.place)
    assert {name: started["environ"].get(name) for name in secret} == {
        "SOME_SECRET": None,
        "CLAUDECODE": None,
        "GEMINI_API_KEY": "k",
        "MORE": "m",
    }
    assert agent.told("session/new") == [{"cwd": str(agent.place), "mcpServers": []}]
    assert agent.told("session/prompt") == [
        {"sessionId": "s1", "prompt": [{"type": "text", "text": "Do it."}]}
    ]


def test_correction_goes_on_in_the_same_session_of_the_same_process(agent: Agent) -> None:
    cost, more = spent(0.25), spent(0.4)
    command = agent.command([{"say": "bad"}, cost, END], [{"say": "good"}, more, END])
    first = agent.adapter.ask(agent.question(command))
    second = agent.adapter.ask(agent.question(command, "Again.", session=first.session))

    assert (first.text, second.text, second.session) == ("bad", "good", "s1")
    assert (first.usage["costUsd"], second.usage["costUsd"]) == (0.25, 0.15)
    assert len(agent.told("initialize")) == len(agent.told("session/new")) == 1


def test_turn_without_an_answer_tells_its_own_cost_alone(agent: Agent) -> None:
    cost, more = spent(0.75), spent(0.875)
    refused = {"result": {"stopReason": "refusal"}}
    command = agent.command(
        [cost, refused],
        [{"say": "x"}, more, END],
        initialize={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}},
    )
    resumed = agent.question(command, session="old", spent={"costUsd": 0.5})

    failure = failure_of(lambda: agent.adapter.ask(resumed))

    assert failure.partial is not None
    assert failure.partial.usage == {"costUsd": 0.25}
    assert agent.adapter.ask(resumed).usage == {"costUsd": 0.125}


@pytest.mark.parametrize(
    ("call", "option"),
    [
        ({"kind": "edit", "locations": [{"path": "store.git/config"}]}, "no"),
        ({"content": [{"type": "diff", "path": "link/hooks/x", "newText": ""}]}, "no"),
        ({"kind": "read", "locations": [{"path": "store.git/config"}]}, "once"),
        ({"kind": "edit", "locations": [{"path": "src/a.py"}, {"line": 3}]}, "once"),
    ],
)
def test_edit_in_the_store_is_refused(call: dict[str, Any], option: str, agent: Agent) -> None:
    store = create_store(str(agent.place / "store.git")).path
    (agent.place / "link").symlink_to("store.git")
    asked = {**PERMISSION, "params": {**PERMISSION["params"], "toolCall": call}}
    agent.ask([{"ask": asked}, {"say": "x"}, END], environ={"UWF_REPO": store})

    outcome = {"outcome": {"outcome": "selected", "optionId": option}}
    assert [each["result"] for each in agent.log() if "result" in each] == [outcome]


def test_lists_of_another_kind_are_ignored(agent: Agent) -> None:
    odd = {**PERMISSION, "params": {**PERMISSION["params"], "options": 5}}
    failed = {"error": {"code": -32000, "message": "log in"}}

    failure = failure_of(lambda: agent.ask([{"ask": odd}, failed], initialize={"authMethods": 5}))

    assert (failure.kind, failure.message) == ("auth", "the agent failed: log in")


def test_garbage_on_stdout_is_log(agent: Agent, capfd: pytest.CaptureFixture[str]) -> None:
    garbage = 'Update available!\n{"level":"info"}\n\n[1, 2]\n{"half": \n\x00\x1b[31m\n'
    got = agent.ask([{"raw": garbage}, {"stderr": "thinking\n"}, {"say": "x"}, END])
    agent.adapter.close()

    assert got.text == "x"
    said = capfd.readouterr().err
    assert "Update available!" in said
    assert "thinking" in said


def test_late_agent_is_cancelled_and_ended(agent: Agent) -> None:
    failure = failure_of(lambda: agent.ask([{"say": "half"}, {"hang": True}], timeout_s=1.5))

    assert failure.kind == "timed-out"
    assert failure.partial is not None
    assert failure.partial.text == "half"
    assert agent.told("session/cancel") == [{"sessionId": "s1"}]
    assert agent.living() == []


def test_silent_agent_that_obeys_nothing_is_ended_with_its_tools(agent: Agent) -> None:
    failure = failure_of(lambda: agent.ask([{"spawn": 71}, {"deaf": True}], silence_s=1.0))

    assert failure.kind == "silent"
    assert len(agent.pids()) == 2
    assert agent.living() == []


def test_greeting_is_no_silence(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=time.monotonic)
    request = AcpClient.request

    def ask_late(*asked: Any) -> dict[str, Any]:
        clock.monotonic = lambda: time.monotonic() + 100
        return request(*asked)

    monkeypatch.setattr(acp, "time", clock)
    monkeypatch.setattr(AcpClient, "request", ask_late)

    assert agent.ask([{"say": "x"}, END], silence_s=50.0).text == "x"


def test_unread_prompt_is_not_waited_for(agent: Agent, tmp_path: Path) -> None:
    script = tmp_path / "deaf"
    hello, opened = (
        json.dumps({"jsonrpc": "2.0", "id": number, "result": result})
        for number, result in ((1, {}), (2, {"sessionId": "s"}))
    )
    script.write_text(f"read -r l; echo '{hello}'; read -r l; echo '{opened}'; exec sleep 72")
    question = agent.question(f"sh {script}", "y" * 1_000_000, timeout_s=1.0)

    assert failure_of(lambda: agent.adapter.ask(question)).kind == "timed-out"


def test_program_corrects_in_the_same_session_and_leaves_nothing_behind(
    agent: Agent, turn: Turn
) -> None:
    command = agent.command(
        [{"spawn": 73}, {"say": "Five."}, END], [{"say": "---\nwords: 5\n---\n"}, END]
    )
    with turn.start("acp", command, turn.thread) as process:
        out, err = process.communicate()

    assert process.returncode == 0, err
    assert json.loads(out) == {
        "meta": {"words": 5},
        "content": "Five.",
        "session": "s1",
        "rung": "front-matter-corrected",
    }
    assert len(agent.told("session/prompt")) == 2
    assert agent.living() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_program_that_is_ended_takes_the_agent_along(
    number: signal.Signals, agent: Agent, turn: Turn
) -> None:
    with turn.start("acp", agent.command([{"spawn": 74}, {"hang": True}]), turn.thread) as process:
        until = time.monotonic() + 20
        while time.monotonic() < until and not (
            (agent.place / "log").exists() and len(agent.pids()) == 2
        ):
            time.sleep(0.02)
        os.killpg(process.pid, number)
        process.wait()
    while time.monotonic() < until and agent.living():
        time.sleep(0.02)

    assert len(agent.pids()) == 2
    assert agent.living() == []
    assert process.returncode == (130 if number == signal.SIGTERM else -signal.SIGKILL)
    assert bool(agent.told("session/cancel")) == (number == signal.SIGTERM)
