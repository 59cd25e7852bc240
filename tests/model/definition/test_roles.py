"""Settings of an agent as they are typed: YAML or JSON, null removes."""

import pytest
from refusing import refuses
from workflow_file import read, spoiled

from uwf_git.model.definition.roles import read_agent_settings

CHECKER = "  checker:\n    outputSchema: {type: object, properties: {ok: {type: boolean}}}\n"


def checker(content: str) -> str:
    """Return the valid file with another checker; its content starts on line 6."""
    return spoiled(CHECKER, f"  checker:\n{content}\n")


@pytest.mark.parametrize("content", ["", "    {}", "    description:\n    systemPrompt: ~"])
def test_what_a_role_does_not_say_has_a_default(content: str) -> None:
    role = read(checker(content)).roles["checker"]
    assert (role.description, role.system_prompt, role.extract_prompt) == ("", "", None)
    assert role.output_schema == {"type": "object"}


def test_checks_are_commands_in_their_order() -> None:
    text = checker("    checks:\n      - make test\n      - |\n        sh -c 'a; b'\n")
    assert read(text).roles["checker"].checks == ("make test", "sh -c 'a; b'")


def test_null_stays_to_remove_a_setting() -> None:
    text = "{timeout: null, env: {A: null, B: b}}"

    assert read_agent_settings(text, name="f") == {"timeout": None, "env": {"A": None, "B": "b"}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a]", "must be a command or a mapping with one, not a list"),
        ("{command: null}", "null cannot remove it"),
        ("{comand: x}", "did you mean 'command'?"),
        ("{retires: null}", "did you mean 'retries'?"),
        ("{timeout: -1}", "timeout: must be a number of seconds"),
        ("{protocol: flag}", "did you mean 'flags'?"),
        ("{env: {API_KEY: x}}", "API_KEY looks secret"),
        ("{env: {UWF_ROLE: x}}", "is set by uwf itself"),
        ("{timeout: a, retries: b}", r"(and 1 more)"),
    ],
)
def test_problems_are_listed(text: str, problem: str) -> None:
    with refuses("bad-agent") as caught:
        read_agent_settings(text, name="--agent x")

    assert caught.value.message.startswith("--agent x is no agent: ")
    assert problem in caught.value.message


def test_what_is_not_yaml_is_refused() -> None:
    for text in ('{"command": "a", "command": "b"}', '{"command": "a"', b"\xff"):
        with refuses("bad-agent", match="f is no agent: "):
            read_agent_settings(text, name="f")
