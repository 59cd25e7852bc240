"""Endpoints, from settings and the environment."""

import os
from pathlib import Path
from typing import Any

import pytest
from agentkit.conftest import MakeContext, Turn
from agentkit.endpoints import scripted

from uwf_git.agentkit.llm.endpoint import Endpoint, extract, find_extractor, read_endpoint
from uwf_git.agentkit.turn import AskFailed
from uwf_git.engine.turn_context import build_extract_context
from uwf_git.errors import BadUsage

MODEL = {"model": "m"}


def read(settings: dict[str, str], **environ: str) -> Endpoint:
    return read_endpoint(settings, environ, section="uwf.llm")


def test_anthropic_has_its_own_variable_and_a_limit() -> None:
    found = read(MODEL | {"api": "Anthropic"}, ANTHROPIC_API_KEY="a", OPENAI_API_KEY="o")
    assert (found.url, found.key, found.max_tokens) == (
        "https://api.anthropic.com/v1",
        "a",
        16_384,
    )


def test_the_key_is_not_shown() -> None:
    assert "sk-geheim" not in repr(read(MODEL, OPENAI_API_KEY="sk-geheim"))


@pytest.mark.parametrize("key", ["sk-geheim\nX: y", "sk-geheim…", "sk-geheim\0"])
def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(AskFailed) as caught:
        read(MODEL, OPENAI_API_KEY=key)
    assert caught.value.kind == "auth"
    assert "geheim" not in caught.value.message + str(caught.value.hint)


def test_without_a_model_the_hint_says_how_to_name_one() -> None:
    with pytest.raises(AskFailed) as caught:
        read({})
    assert caught.value.kind == "usage"
    assert caught.value.hint == "name one: git config --global uwf.llm.model MODEL"


def test_numbers_are_read() -> None:
    found = read(MODEL | {"maxtokens": "4096", "temperature": "0.25"})
    assert (found.max_tokens, found.temperature) == (4096, 0.25)


@pytest.mark.parametrize(
    "wrong",
    [
        {"api": "gemini"},
        {"maxtokens": "0"},
        {"maxtokens": "many"},
        {"maxtokens": "9" * 40},
        {"maxtokens": "\u0663"},
        {"temperature": "hot"},
        {"temperature": "nan"},
        {"temperature": "3"},
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, str]) -> None:
    with pytest.raises(BadUsage, match=r"uwf\.llm\."):
        read(MODEL | wrong)


# The settings of the extractor: whether a model is configured, and which agents may use it.


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
TEXT = "I looked at it. I approve of this change."


def told(meta: dict[str, Any], evidence: dict[str, str]) -> dict[str, Any]:
    entries = [{"field": name, "quote": quote} for name, quote in evidence.items()]
    return {"json": {"evidence": entries, "missing": [], "meta": meta}}


def configure(url: str) -> None:
    config = f'[uwf "extractor"]\n\tmodel = m\n\turl = {url}\n\tkeyEnv = MY_KEY\n'
    with Path(os.environ["GIT_CONFIG_GLOBAL"]).open("a") as file:
        file.write(config)


def test_no_model_is_called_unless_one_is_configured() -> None:
    environ = {**os.environ, "UWF_MODEL": "m"}
    assert find_extractor(environ, "reviewer") is None
    with pytest.raises(AskFailed) as caught:
        extract(TEXT, SCHEMA, environ=environ)
    assert caught.value.hint == "name its model: git config --global uwf.extractor.model MODEL"


def test_the_configured_model_reads_what_an_agent_wrote(context: MakeContext) -> None:
    turn = told({"approved": True, "severity": None, "comments": None}, {"approved": "I approve"})
    with scripted(turn) as served:
        configure(served.url)
        extractor = find_extractor({**os.environ, "MY_KEY": "k"}, "reviewer")
        assert extractor is not None
        answer = extractor(build_extract_context(context(), TEXT))
    assert answer.structured == {"approved": True}
    assert answer.usage["turns"] == 1


def test_an_agent_may_extract_something_before_it_runs() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    with scripted(told({"path": "/srv/shop"}, {"path": "/srv/shop"})) as served:
        configure(served.url)
        found = extract("It is in /srv/shop.", schema, prompt="Where?", environ=os.environ)
    assert found == {"path": "/srv/shop"}


def test_lookup_without_an_extractor_loads_no_http(turn: Turn) -> None:
    ran = turn.python(
        "-c",
        "import os, sys; from uwf_git.agentkit.llm.endpoint import find_extractor; "
        "print(find_extractor(os.environ, 'counter'), 'http.client' in sys.modules)",
    )
    assert ran.out == "None False\n"
