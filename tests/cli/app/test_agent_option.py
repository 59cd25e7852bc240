"""`--agent`: a command, settings, or a file with either."""

import json

import pytest
from cli.program import Uwf
from refusing import refuses

from uwf_git.cli.app.parameters import read_agent_option


@pytest.mark.parametrize("text", ["a", "b=日本", '{"command": "@x"}', "env X=@file y", "a@b", "@"])
def test_value_that_names_no_file_is_given_back(text: str) -> None:
    assert read_agent_option(text) == text


def test_file_is_replaced_by_its_settings(uwf: Uwf) -> None:
    file = uwf.file("command: uwf-x\nenv: {LANG: C}\n", name="agent=1.yaml")
    settings = {"command": "uwf-x", "env": {"LANG": "C"}}

    assert json.loads(read_agent_option(f"@{file}")) == settings
    role, _, given = read_agent_option(f"writer=@{file}").partition("=")
    assert (role, json.loads(given)) == ("writer", settings)
    plain = uwf.file("uwf-x --fast\n", name="plain.yaml")
    assert json.loads(read_agent_option(f"@{plain}")) == {"command": "uwf-x --fast"}


def test_what_cannot_be_stored_is_refused(uwf: Uwf) -> None:
    with refuses("not-text"):
        read_agent_option("\udcff")
    with refuses("input-unreadable"):
        read_agent_option("writer=@nowhere.yaml")
    with refuses("bad-agent", match=r"bad\.yaml is no agent: timeout"):
        read_agent_option(f"@{uwf.file('timeout: -1', name='bad.yaml')}")
