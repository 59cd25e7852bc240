import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from agentkit.conftest import Turn
from agentkit.traces import find_odd

from uwf_git.agentkit.adapters.acp import AcpAdapter
from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.errors import BadUsage
from uwf_git.store.store import create_store

AGENT = Path(__file__).parent / "acp_agent.py"
END = {"result": {"stopReason": "end_turn"}}
CALL = {
    "sessionUpdate": "tool_call",
    "toolCallId": "call_1",
    "title": "Reading src/auth.py",
    "kind": "read",
    "status": "pending",
    "rawInput": {"path": "src/auth.py"},
}
CALLED = {
    "sessionUpdate": "tool_call_update",
    "toolCallId": "call_1",
    "status": "completed",
    "content": [{"type": "content", "content": {"type": "text", "text": "def login()"}}],
}
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

    def told(self, method: str) -> list[Any]:
        return [each["params"] for each in self.log() if each.get("method") == method]

    def pids(self) -> list[int]:
        return [value for each in self.log() for key, value in each.items() if key in PIDS]


PIDS = ("started", "spawned")


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """Yield a scripted agent; no process may be left when its adapter was closed."""
    made = Agent(tmp_path)
    yield made
    made.adapter.close()
    if (tmp_path / "log").exists():
        assert [pid for pid in made.pids() if lives(pid)] == []


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def failure_of(call: Callable[[], Any]) -> AskFailed:
    with pytest.raises(AskFailed) as caught:
        call()
    return caught.value


def test_last_message_is_the_answer_and_the_rest_is_trace(agent: Agent) -> None:
    usage = {"inputTokens": 10, "outputTokens": 3, "cachedReadTokens": 2, "thoughtTokens": 1}
    spent = {"sessionUpdate": "usage_update", "used": 13, "size": 200_000}
    answer = agent.ask(
        [
            {"say": "I will "},
            {"say": "read it."},
            {"update": CALL},
            {"update": CALLED},
            {"update": {"sessionUpdate": "agent_thought_chunk", "content": {"text": "hm"}}},
            {"update": spent | {"cost": {"amount": 0.25, "currency": "USD"}}},
            {"say": "---\nok: true\n---\n"},
            {"say": "Fine."},
            {"result": {"stopReason": "end_turn", "usage": usage}},
        ]
    )

    assert answer.text == "---\nok: true\n---\nFine."
    assert answer.session == "s1"
    assert answer.usage == {
        "inputTokens": 10,
        "outputTokens": 3,
        "cachedInputTokens": 2,
        "reasoningTokens": 1,
        "costUsd": 0.25,
    }
    assert answer.trace == (
        {"type": "message", "text": "I will read it."},
        {
            "type": "tool",
            "name": "Reading src/auth.py",
            "kind": "read",
            "input": {"path": "src/auth.py"},
            "output": "def login()",
            "ok": True,
        },
    )
    assert find_odd(answer.trace) == []


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
    cost = {"sessionUpdate": "usage_update", "cost": {"amount": 0.25, "currency": "USD"}}
    more = {"sessionUpdate": "usage_update", "cost": {"amount": 0.4, "currency": "USD"}}
    command = agent.command(
        [{"say": "bad"}, {"update": cost}, END], [{"say": "good"}, {"update": more}, END]
    )
    first = agent.adapter.ask(agent.question(command))
    second = agent.adapter.ask(agent.question(command, "Again.", session=first.session))

    assert (first.text, second.text, second.session) == ("bad", "good", "s1")
    assert (first.usage["costUsd"], second.usage["costUsd"]) == (0.25, 0.15)
    assert len(agent.told("initialize")) == len(agent.told("session/new")) == 1


@pytest.mark.parametrize(
    ("able", "method"),
    [
        ({"loadSession": True}, "session/load"),
        ({"sessionCapabilities": {"resume": {}}}, "session/resume"),
    ],
)
def test_session_of_an_older_process_is_loaded_and_its_story_left_out(
    able: dict[str, Any], method: str, agent: Agent
) -> None:
    cost = {"sessionUpdate": "usage_update", "cost": {"amount": 0.75, "currency": "USD"}}
    answer = agent.ask(
        [{"say": "new"}, {"update": cost}, END],
        initialize={"protocolVersion": 1, "agentCapabilities": able},
        session="old",
        spent={"costUsd": 0.5},
    )

    assert (answer.text, answer.session, answer.usage) == ("new", "old", {"costUsd": 0.25})
    assert agent.told(method)[0]["sessionId"] == "old"


def test_turn_without_an_answer_tells_its_own_cost_alone(agent: Agent) -> None:
    cost = {"sessionUpdate": "usage_update", "cost": {"amount": 0.75, "currency": "USD"}}
    more = {"sessionUpdate": "usage_update", "cost": {"amount": 0.875, "currency": "USD"}}
    refused = {"result": {"stopReason": "refusal"}}
    command = agent.command(
        [{"update": cost}, refused],
        [{"say": "x"}, {"update": more}, END],
        initialize={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}},
    )
    resumed = agent.question(command, session="old", spent={"costUsd": 0.5})

    with pytest.raises(AskFailed) as caught:
        agent.adapter.ask(resumed)

    assert caught.value.partial is not None
    assert caught.value.partial.usage == {"costUsd": 0.25}
    assert agent.adapter.ask(resumed).usage == {"costUsd": 0.125}


@pytest.mark.parametrize(
    "script",
    [
        {"initialize": {"protocolVersion": 1, "agentCapabilities": {}}},
        {
            "initialize": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}},
            "load": {"error": {"code": -32602, "message": "no such session"}},
        },
    ],
    ids=["cannot", "lost"],
)
def test_session_that_is_gone_is_reported(script: dict[str, Any], agent: Agent) -> None:
    failure = failure_of(lambda: agent.ask([], session="old", **script))

    assert failure.kind == "no-session"


@pytest.mark.parametrize(
    ("permission", "answer", "allowed"),
    [
        (None, {"outcome": "selected", "optionId": "once"}, True),
        ("allow", {"outcome": "selected", "optionId": "once"}, True),
        ("read execute", {"outcome": "selected", "optionId": "once"}, True),
        ("read,edit", {"outcome": "selected", "optionId": "no"}, False),
        ("deny", {"outcome": "selected", "optionId": "no"}, False),
    ],
)
def test_permission_is_answered_as_the_setting_says(
    permission: str | None, answer: dict[str, Any], *, allowed: bool, agent: Agent
) -> None:
    settings = {} if permission is None else {"permission": permission}
    got = agent.ask([{"ask": PERMISSION}, {"say": "x"}, END], settings=settings)

    assert [each["result"] for each in agent.log() if "result" in each] == [{"outcome": answer}]
    assert got.trace == (
        {"type": "permission", "name": "rm -r build", "kind": "execute", "allowed": allowed},
    )
    assert find_odd(got.trace) == []


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


def test_permission_without_a_fitting_option_is_cancelled(agent: Agent) -> None:
    bare = {"method": "session/request_permission", "params": {"options": [{"name": "?"}]}}
    agent.ask([{"ask": bare}, {"say": "x"}, END])

    outcome = {"outcome": {"outcome": "cancelled"}}
    assert [each["result"] for each in agent.log() if "result" in each] == [outcome]


def test_request_that_we_do_not_know_is_refused_at_once(agent: Agent) -> None:
    agent.ask([{"ask": {"method": "fs/read_text_file", "params": {}}}, {"say": "x"}, END])

    assert [each["error"]["code"] for each in agent.log() if "error" in each] == [-32601]


def test_garbage_on_stdout_is_log(agent: Agent, capfd: pytest.CaptureFixture[str]) -> None:
    garbage = 'Update available!\n{"level":"info"}\n\n[1, 2]\n{"half": \n\x00\x1b[31m\n'
    got = agent.ask([{"raw": garbage}, {"stderr": "thinking\n"}, {"say": "x"}, END])
    agent.adapter.close()

    assert got.text == "x"
    said = capfd.readouterr().err
    assert "Update available!" in said
    assert "thinking" in said


def test_updates_of_odd_shapes_are_left_out(agent: Agent) -> None:
    odd: list[Any] = [
        {"sessionUpdate": "agent_message_chunk"},
        {"sessionUpdate": "agent_message_chunk", "content": 7},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "AA=="}},
        {"sessionUpdate": "usage_update", "cost": {"amount": "much", "currency": "USD"}},
        {"sessionUpdate": "usage_update", "cost": {"amount": 3, "currency": "EUR"}},
        {"sessionUpdate": "next_year"},
        {},
    ]
    got = agent.ask([*({"update": each} for each in odd), {"say": "x"}, END])

    assert (got.text, got.usage, got.trace) == ("x", {}, ())


def test_big_messages_go_both_ways(agent: Agent) -> None:
    got = agent.ask([{"big": 5_000_000}, END], prompt="y" * 2_000_000)

    assert len(got.text) == 5_000_000
    assert len(agent.told("session/prompt")[0]["prompt"][0]["text"]) == 2_000_000


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("max_tokens", "too-long"),
        ("max_turn_requests", "too-long"),
        ("refusal", "model-error"),
        ("cancelled", "no-result"),
    ],
)
def test_turn_that_stopped_early_is_no_answer(reason: str, kind: str, agent: Agent) -> None:
    failure = failure_of(lambda: agent.ask([{"say": "half"}, {"result": {"stopReason": reason}}]))

    assert failure.kind == kind
    assert failure.partial is not None
    assert failure.partial.text == "half"


def test_turn_without_a_word_is_no_answer_unless_something_was_handed_in(
    agent: Agent, tmp_path: Path
) -> None:
    assert failure_of(lambda: agent.ask([END])).kind == "no-result"
    agent.adapter.close()
    step = tmp_path / "step"
    step.mkdir()
    got = agent.ask(
        [{"submit": {"meta": {"ok": True}}}, END],
        environ={"UWF_STEP_DIR": str(step)},
        step_dir=str(step),
    )

    assert got.text == ""


def test_second_version_ends_with_an_idle_state(agent: Agent) -> None:
    message = {"sessionUpdate": "agent_message", "messageId": "m1"}
    idle = {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}
    got = agent.ask(
        [
            {"result": {}},
            {"update": {"sessionUpdate": "state_update", "state": "running"}},
            {
                "update": {
                    "sessionUpdate": "agent_message_chunk",
                    "messageId": "m1",
                    "content": {"type": "text", "text": "dra"},
                }
            },
            {"update": message | {"content": [{"type": "text", "text": "whole"}]}},
            {"update": idle | {"usage": {"inputTokens": 4, "outputTokens": 2}}},
        ],
        initialize={"protocolVersion": 2, "capabilities": {}},
    )

    assert (got.text, got.usage) == ("whole", {"inputTokens": 4, "outputTokens": 2})


def test_gemini_tells_its_tokens_elsewhere(agent: Agent) -> None:
    quota = {"quota": {"token_count": {"input_tokens": 7, "output_tokens": 3}}}
    got = agent.ask([{"say": "x"}, {"result": {"stopReason": "end_turn", "_meta": quota}}])

    assert got.usage == {"inputTokens": 7, "outputTokens": 3}


def test_login_that_is_needed_is_reported(agent: Agent) -> None:
    failure = failure_of(
        lambda: agent.ask(
            [],
            initialize={"protocolVersion": 1, "authMethods": [{"id": "a", "name": "Log in"}]},
            new={"error": {"code": -32000, "message": "Authentication required"}},
        )
    )

    assert failure.kind == "auth"
    assert failure.hint == "log in with the agent's own program first (Log in)"


def test_error_in_the_middle_keeps_what_was_said(agent: Agent) -> None:
    error = {"code": -32603, "message": "Internal error", "data": {"details": "HTTP 500"}}
    failure = failure_of(lambda: agent.ask([{"say": "half"}, {"error": error}]))

    assert (failure.kind, failure.message) == (
        "model-error",
        "the agent failed: Internal error: HTTP 500",
    )
    assert failure.partial is not None
    assert failure.partial.text == "half"


def test_agent_that_dies_is_reported_with_its_last_words(agent: Agent) -> None:
    failure = failure_of(
        lambda: agent.ask([{"say": "half"}, {"stderr": "out of memory\n"}, {"exit": 3}])
    )

    assert failure.kind == "crashed"
    assert failure.message == (
        "the agent ended with exit status 3 before it answered: out of memory"
    )
    assert failure.partial is not None
    assert failure.partial.text == "half"


def test_program_that_speaks_no_acp_is_reported(agent: Agent) -> None:
    failure = failure_of(
        lambda: agent.adapter.ask(agent.question("sh -c 'echo usage: >&2; exit 2'"))
    )

    assert failure.kind == "crashed"
    assert "exit status 2" in failure.message


def test_missing_program_and_one_that_was_not_named(agent: Agent) -> None:
    missing = failure_of(lambda: agent.adapter.ask(agent.question("no-such-agent --acp")))
    assert missing.kind == "missing"

    with pytest.raises(BadUsage):
        agent.adapter.ask(agent.question(" "))


def test_late_agent_is_cancelled_and_ended(agent: Agent) -> None:
    failure = failure_of(lambda: agent.ask([{"say": "half"}, {"hang": True}], timeout_s=1.5))

    assert failure.kind == "timed-out"
    assert failure.partial is not None
    assert failure.partial.text == "half"
    assert agent.told("session/cancel") == [{"sessionId": "s1"}]
    assert [pid for pid in agent.pids() if lives(pid)] == []


def test_silent_agent_that_obeys_nothing_is_ended_with_its_tools(agent: Agent) -> None:
    failure = failure_of(lambda: agent.ask([{"spawn": 71}, {"deaf": True}], silence_s=1.0))

    assert failure.kind == "silent"
    assert len(agent.pids()) == 2
    assert [pid for pid in agent.pids() if lives(pid)] == []


def test_unread_prompt_is_not_waited_for(agent: Agent, tmp_path: Path) -> None:
    script = tmp_path / "deaf"
    hello, opened = (
        json.dumps({"jsonrpc": "2.0", "id": number, "result": result})
        for number, result in ((1, {}), (2, {"sessionId": "s"}))
    )
    script.write_text(f"read -r l; echo '{hello}'; read -r l; echo '{opened}'; exec sleep 72")
    question = agent.question(f"sh {script}", "y" * 1_000_000, timeout_s=1.0)

    assert failure_of(lambda: agent.adapter.ask(question)).kind == "timed-out"


def test_model_is_chosen_as_the_agent_lets_us(agent: Agent) -> None:
    options = [{"id": "m", "category": "model"}]
    agent.ask(
        [{"say": "x"}, END],
        new={"sessionId": "s1", "configOptions": options},
        settings={"model": "big"},
    )
    assert agent.told("session/set_config_option") == [
        {"sessionId": "s1", "configId": "m", "value": "big"}
    ]
    agent.adapter.close()
    agent.ask(
        [{"say": "x"}, END], new={"sessionId": "s1", "models": {"a": 1}}, settings={"model": "big"}
    )
    assert agent.told("session/set_model") == [{"sessionId": "s1", "modelId": "big"}]
    agent.adapter.close()
    with pytest.raises(BadUsage):
        agent.ask([], settings={"model": "big"})


def test_tools_of_the_thread_are_offered(agent: Agent) -> None:
    turn = {"UWF_REPO": "/r", "UWF_THREAD_ID": "T", "UWF_ROLE": "counter"}
    agent.ask([{"say": "x"}, END], environ=turn)
    agent.adapter.close()
    agent.ask([{"say": "x"}, END], environ=turn, settings={"mcp": "off"})

    (offered,), none = (each["mcpServers"] for each in agent.told("session/new"))
    assert (offered["name"], offered["command"]) == ("uwf", sys.executable)
    assert {"name": "UWF_ROLE", "value": "counter"} in offered["env"]
    assert none == []


def program(turn: Turn, command: str, **environ: str) -> "subprocess.Popen[bytes]":
    """Start uwf-acp as the engine does."""
    return subprocess.Popen(
        [sys.executable, "-m", "uwf_git.agentkit.adapters", "acp", command, turn.thread],
        cwd=turn.place,
        env=os.environ | {"UWF_REPO": f"{turn.place}/store.git"} | environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def test_program_corrects_in_the_same_session_and_leaves_nothing_behind(
    agent: Agent, turn: Turn
) -> None:
    command = agent.command(
        [{"spawn": 73}, {"say": "Five."}, END], [{"say": "---\nwords: 5\n---\n"}, END]
    )
    with program(turn, command) as process:
        out, err = process.communicate()

    assert process.returncode == 0, err
    assert json.loads(out) == {
        "meta": {"words": 5},
        "content": "Five.",
        "session": "s1",
        "rung": "front-matter-corrected",
    }
    assert len(agent.told("session/prompt")) == 2
    assert [pid for pid in agent.pids() if lives(pid)] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_program_that_is_ended_takes_the_agent_along(
    number: signal.Signals, agent: Agent, turn: Turn
) -> None:
    command = agent.command([{"spawn": 74}, {"hang": True}])
    with program(turn, command) as process:
        until = time.monotonic() + 20
        while time.monotonic() < until and not (
            (agent.place / "log").exists() and len(agent.pids()) == 2
        ):
            time.sleep(0.02)
        os.killpg(process.pid, number)
        process.wait()
    while time.monotonic() < until and any(map(lives, agent.pids())):
        time.sleep(0.02)

    assert len(agent.pids()) == 2
    assert [pid for pid in agent.pids() if lives(pid)] == []
    assert process.returncode == (130 if number == signal.SIGTERM else -signal.SIGKILL)
    assert bool(agent.told("session/cancel")) == (number == signal.SIGTERM)


def test_program_explains_itself(turn: Turn) -> None:
    ran = turn.python("-m", "uwf_git.agentkit.adapters", "acp", "--help")

    assert ran.status == 0
    assert "uwf-acp [--SETTING VALUE]... 'COMMAND' THREAD-ID" in ran.out
    assert "gemini --acp" in ran.out
