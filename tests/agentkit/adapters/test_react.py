"""uwf-react, against a scripted model."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agentkit.adapters.test_llm import SCHEMA
from agentkit.conftest import MakeContext, Turn
from agentkit.endpoints import Odd, chat, odd, scripted

from uwf_git.agentkit.adapters import model
from uwf_git.agentkit.adapters.model import ReactAdapter
from uwf_git.agentkit.ladder import Fallbacks, NoMeta, extract_with_fallbacks
from uwf_git.agentkit.turn import AdapterQuestion, AskFailed
from uwf_git.errors import AgentFailed, BadUsage

DONE = {"tool": "submit_result", "args": {"content": "Three.", "meta": {"words": 3}}}


def question(url: str, place: Path, **given: Any) -> AdapterQuestion:
    settings = {"url": url, "model": "m", **given.pop("settings", {})}
    environ = {**os.environ, **given.pop("environ", {})}
    return AdapterQuestion(
        prompt=given.pop("prompt", "count"),
        settings=settings,
        environ=environ,
        workdir=str(place),
        schema=given.pop("schema", SCHEMA),
        **given,
    )


def test_the_shell_does_not_see_our_keys(tmp_path: Path) -> None:
    keys = {"OPENAI_API_KEY": "sk-geheim", "UWF_LLM_LOGIN": "sk-geheim"}
    settings = {"keyenv": "UWF_LLM_LOGIN"}
    with scripted({"run": "env"}, DONE) as served:
        answer = ReactAdapter().ask(question(served.url, tmp_path, environ=keys, settings=settings))
    assert "geheim" not in str(answer.trace)
    assert "HOME=" in str(answer.trace)


def test_the_shell_can_be_taken_away(tmp_path: Path) -> None:
    with scripted({"tool": "shell", "args": {"command": "touch made"}}, DONE) as served:
        answer = ReactAdapter().ask(question(served.url, tmp_path, settings={"shell": "false"}))
    assert "shell" not in {tool["function"]["name"] for tool in served.asked[0]["tools"]}
    assert "there is no shell" in served.asked[0]["messages"][0]["content"]
    assert not (tmp_path / "made").exists()
    assert answer.structured == {"words": 3}


def test_a_correction_is_answered_without_tools(tmp_path: Path) -> None:
    adapter = ReactAdapter()
    with scripted(DONE) as served:
        first = adapter.ask(question(served.url, tmp_path))
    bad = {"id": "c", "function": {"name": "write_file", "arguments": '{"path": "a"}'}}
    good = chat(json.dumps({"content": "", "meta": {"words": 4}}))
    with odd(Odd(body=chat(None, tool_calls=[bad])), Odd(body=good)) as served:
        for structured in (None, {"words": 4}):
            again = adapter.ask(
                question(served.url, tmp_path, prompt="Wrong.", session=first.session)
            )
            assert again.structured == structured
        assert "write_file" not in json.dumps([body.get("tools") for body in served.asked])
    assert not (tmp_path / "a").exists()
    assert first.session == again.session


@pytest.mark.parametrize(
    ("settings", "turns"),
    [({"turns": "1"}, 1), ({"turns": ""}, 50), ({"tokens": "1"}, 1), ({"tokens": "53"}, 2)],
)
def test_limits_hold_with_all_corrections_and_are_named(
    tmp_path: Path, settings: dict[str, str], turns: int, context: MakeContext
) -> None:
    calls = [
        {"id": "c", "function": {"name": "list_files", "arguments": json.dumps({"folder": f"{n}"})}}
        for n in range(60)
    ]
    with odd(*(Odd(body=chat("I need more.", tool_calls=[each])) for each in calls)) as served:
        asked = question(served.url, tmp_path, settings=settings)
        with pytest.raises(AgentFailed) as caught:
            extract_with_fallbacks(ReactAdapter(), context(), asked, Fallbacks())
    assert len(served.asked) == turns
    assert f"uwf.react.{next(iter(settings))}" in caught.value.message


def test_corrections_count_as_turns(tmp_path: Path, context: MakeContext) -> None:
    with odd(Odd(body=chat("In words."))) as served:
        asked = question(served.url, tmp_path, settings={"turns": "2"})
        with pytest.raises(NoMeta) as caught:
            extract_with_fallbacks(ReactAdapter(), context(), asked, Fallbacks())
    assert len(served.asked) == 2
    assert "asked again: the limit of turns is reached" in caught.value.message


@pytest.mark.parametrize(
    "settings", [{"turns": "0"}, {"tokens": "lots"}, {"shell": "maybe"}, {"api": "x"}]
)
def test_a_wrong_setting_is_named(tmp_path: Path, settings: dict[str, str]) -> None:
    with pytest.raises(BadUsage, match=r"uwf\.react\."):
        ReactAdapter().ask(question("http://127.0.0.1:9", tmp_path, settings=settings))


def test_a_work_directory_that_is_gone_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="does not exist"):
        ReactAdapter().ask(question("http://127.0.0.1:9", tmp_path / "gone"))


def test_the_time_limit_holds_for_all_of_it(tmp_path: Path) -> None:
    with odd(Odd(hangs=True)) as served, pytest.raises(AskFailed) as caught:
        ReactAdapter().ask(question(served.url, tmp_path, timeout_s=0.05))
    assert caught.value.kind == "timed-out"


def test_the_time_limit_does_not_begin_anew_with_a_correction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = ReactAdapter()
    with scripted(DONE) as served:
        first = adapter.ask(question(served.url, tmp_path, timeout_s=60))
        monkeypatch.setattr(model, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 61))
        with pytest.raises(AskFailed) as caught:
            adapter.ask(question(served.url, tmp_path, session=first.session, timeout_s=60))
    assert caught.value.kind == "timed-out"
    assert len(served.asked) == 1


def test_the_program_plays_a_turn_and_can_read_the_thread(turn: Turn) -> None:
    with scripted({"tool": "fetch_thread", "args": {"step": 0}}, DONE) as served:
        model = {"UWF_REACT_URL": served.url, "UWF_REACT_MODEL": "m", "OPENAI_API_KEY": "sk-geheim"}
        words = ("--shell=false", turn.thread)
        ran = turn.adapter("react", *words, UWF_THREAD_ID=turn.thread, **model)
    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["meta"] == {"words": 3}
    assert served.asked[1]["messages"][-1]["content"] == "one two three"
    assert ran.err.splitlines() == ["fetch_thread {'step': 0}", f"submit_result {DONE['args']}"]
