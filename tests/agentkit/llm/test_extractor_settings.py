"""The settings of the extractor: whether a model is configured, and which agents may use it."""

import os
from pathlib import Path
from typing import Any

import pytest
from agentkit.conftest import MakeContext, Turn
from agentkit.endpoints import scripted

from uwf_git.agentkit.context import build_extract_context
from uwf_git.agentkit.extraction.adapter import AskFailed
from uwf_git.agentkit.llm.endpoint import extract, find_extractor

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
