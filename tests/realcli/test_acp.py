from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agentkit.conftest import MakeContext
from realcli.conftest import FRONT, end_survivors, start_thread
from realcli.served_model import MODEL, serve
from realcli.vendors import COPILOT, GEMINI, OPENCODE, QWEN, Vendor, require

from uwf_git.agentkit.adapters.acp import AcpAdapter
from uwf_git.agentkit.ladder import Fallbacks, NoMeta, extract_with_fallbacks
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed, read_submitted

COMMANDS = {
    # Without a model it asks one which model to ask.
    "gemini": (GEMINI, f"gemini --acp -m {MODEL}"),
    "opencode": (OPENCODE, "opencode acp"),
    "copilot": (COPILOT, "copilot --acp"),
    "qwen": (QWEN, "qwen --acp"),
}

_PATIENCE_S = 45


@dataclass
class Spoken:
    """A real program that speaks ACP, at home in a place of its own."""

    vendor: Vendor
    command: str
    place: Path
    adapter: AcpAdapter

    def question(self, url: str, **more: Any) -> AdapterQuestion:
        environ = {
            **self.vendor.environ(self.place / "home", url),
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "COPILOT_MODEL": MODEL,
            **more.pop("environ", {}),
        }
        question = {
            "prompt": "Review it.\n",
            "workdir": str(self.place / "project"),
            "environ": environ,
            "settings": {"command": self.command, **more.pop("settings", {})},
            "timeout_s": _PATIENCE_S,
        }
        return AdapterQuestion(**{**question, **more})

    def ask(self, *turns: dict[str, Any], **more: Any) -> AdapterAnswer:
        with serve(*turns) as model:
            return self.adapter.ask(self.question(model.url, **more))


@pytest.fixture(params=COMMANDS)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Spoken]:
    """Yield each installed program that speaks ACP; it leaves nothing behind."""
    vendor, command = COMMANDS[request.param]
    require(vendor)
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    spoken = Spoken(vendor, command, tmp_path, AcpAdapter())
    yield spoken
    spoken.adapter.close()
    assert end_survivors(tmp_path) == []


def test_text_after_a_tool_call(agent: Spoken) -> None:
    answer = agent.ask({"run": "echo hi | tee made"}, {"text": FRONT})

    assert answer.text.strip() == FRONT.strip()
    assert (agent.place / "project" / "made").read_text() == "hi\n"
    assert answer.session
    assert [each["type"] for each in answer.trace].count("tool") == 1


def test_tool_that_was_not_allowed_is_not_run(agent: Spoken) -> None:
    # Some end their turn then, others go on without it; opencode asks for nothing by default.
    answer: AdapterAnswer | None = None
    with suppress(AskFailed):
        turns = ({"run": "echo hi | tee made"}, {"text": FRONT})
        answer = agent.ask(*turns, settings={"permission": "deny"})
    question = [each for each in answer.trace if each["type"] == "permission"] if answer else [{}]

    assert (agent.place / "project" / "made").exists() == (question == [])


def test_correction_in_the_same_session(agent: Spoken, context: MakeContext) -> None:
    turns = ({"text": "Fine."}, {"asked": "Your work is done and kept", "text": FRONT})
    with serve(*turns) as model:
        result = extract_with_fallbacks(
            agent.adapter, context(), agent.question(model.url), Fallbacks()
        )

    assert (result.meta, result.content.strip()) == ({"approved": True}, "Fine.")
    assert result.rung == "front-matter-corrected"


def test_long_prompt(agent: Spoken) -> None:
    assert agent.ask({"text": FRONT}, prompt="word " * 60_000).text.strip() == FRONT.strip()


def test_session_of_an_older_process(agent: Spoken) -> None:
    first = agent.ask({"text": FRONT})
    agent.adapter.close()
    try:
        second = agent.ask({"text": "Again."}, session=first.session)
    except AskFailed as failed:
        # It says that it can, and mostly finds none: what its end cut short is not saved.
        if agent.vendor is GEMINI and failed.kind == "no-session":
            return  # the ladder begins anew then
        raise

    assert (second.session, second.text.strip()) == (first.session, "Again.")


def test_model_that_fails_gives_no_result(agent: Spoken, context: MakeContext) -> None:
    # copilot ends its turn well, with the error as its text: it holds no fields.
    with serve({"status": 401, "message": "bad key"}) as model, pytest.raises((AskFailed, NoMeta)):
        extract_with_fallbacks(
            agent.adapter, context(), agent.question(model.url, timeout_s=20), Fallbacks()
        )


def test_model_that_hangs_is_not_waited_for(agent: Spoken) -> None:
    with pytest.raises(AskFailed) as caught:
        agent.ask({"text": "never", "hang": True}, timeout_s=15)

    assert caught.value.kind == "timed-out"


def test_tools_of_uwf_can_be_used(agent: Spoken) -> None:
    if agent.vendor in (COPILOT, QWEN):
        pytest.skip("it does not offer the tools to a model at once")
    handed_in = {"meta": {"approved": True}, "content": "By the tool."}
    step = agent.place / "step"
    step.mkdir()
    environ = agent.vendor.environ(agent.place / "home", "")
    environ |= {"UWF_REPO": str(agent.place / "store.git")}
    thread = start_thread(agent.place, environ)
    turn = {"UWF_REPO": environ["UWF_REPO"], "UWF_THREAD_ID": thread, "UWF_STEP_DIR": str(step)}
    agent.ask(
        {"tool": "*submit_result", "args": handed_in},
        {"text": "Done."},
        environ=turn,
        step_dir=str(step),
    )

    assert read_submitted(str(step)) == handed_in
