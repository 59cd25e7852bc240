import pytest
from workflow_file import SOUND, read

from uwf_git.model.definition.definition import AgentSpec


def test_agent_may_be_a_command_alone() -> None:
    definition = read(SOUND + "defaultAgent: uwf-hermes --fast 'two words'\n")
    assert definition.default_agent == AgentSpec("uwf-hermes --fast 'two words'")


def test_agent_may_say_more_than_its_command() -> None:
    agent = "{command: a, protocol: flags, timeout: 1.5, retries: 0, env: {LANG: C}}"
    assert read(f"{SOUND}defaultAgent: {agent}\n").default_agent == AgentSpec(
        "a", protocol="flags", timeout=1.5, retries=0, env={"LANG": "C"}
    )


def test_what_an_agent_leaves_empty_is_not_set() -> None:
    agent = "{command: a, protocol: , timeout: ~, retries: null, env: }"
    assert read(f"{SOUND}defaultAgent: {agent}\n").default_agent == AgentSpec("a")


def test_overrides_are_read_by_role() -> None:
    definition = read(SOUND + "agentOverrides:\n  writer: a\n  checker: {command: b}\n")
    assert definition.agent_overrides == {"writer": AgentSpec("a"), "checker": AgentSpec("b")}


@pytest.mark.parametrize("setting", ["defaultAgent:", "agentOverrides:", "agentOverrides: {}"])
def test_without_agents_the_configuration_decides(setting: str) -> None:
    definition = read(f"{SOUND}{setting}\n")
    assert (definition.default_agent, definition.agent_overrides) == (None, {})


def test_command_may_be_a_block_with_a_script_in_quotes() -> None:
    agent = read(
        SOUND + "defaultAgent: |\n  uwf-shell '\n  make\n  \tmake test\n  '\n"
    ).default_agent
    assert agent == AgentSpec("uwf-shell '\nmake\n\tmake test\n'")


@pytest.mark.parametrize(
    "name", ["MAX_TOKENS", "TOKENIZERS_PARALLELISM", "KEYBOARD", "PATH", "PWD", "UWF_MODEL", "_a1"]
)
def test_plain_setting_is_taken(name: str) -> None:
    agent = read(f"{SOUND}defaultAgent: {{command: a, env: {{{name}: x}}}}\n").default_agent
    assert agent is not None
    assert agent.env == {name: "x"}


@pytest.mark.parametrize("backoff", [0, 1.5, 3600])
def test_wait_between_two_tries_is_read(backoff: float) -> None:
    agent = read(f"{SOUND}defaultAgent: {{command: a, retries: 2, backoff: {backoff}}}\n")

    assert agent.default_agent is not None
    assert agent.default_agent.as_payload() == {"command": "a", "retries": 2, "backoff": backoff}
