import pytest
from workflow_file import SOUND, problems_of, read

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


def test_agent_that_cannot_be_run_is_reported() -> None:
    for command, message in [
        ("''", "the command is empty"),
        ("'  '", "the command is empty"),
        ("' a'", "the command starts or ends with a blank"),
        ("'a '", "the command starts or ends with a blank"),
        ("|\n\n  a\n", "the command starts or ends with a blank"),
        ('"a\\e[31m"', "the command has the control character U+001B in it"),
        ('"a\\0"', "the command has the control character U+0000 in it"),
        ("a 'b", "the command cannot be split into words: no closing quotation"),
        ("'a \\'", "the command cannot be split into words: no escaped character"),
        ("\"'' a\"", "the command names no program"),
        ("[a, b]", "must be a command or a mapping with one, not a list"),
        ("1", "must be a command or a mapping with one, not a number"),
        ("{}", "'command' is missing"),
        ("{timeout: 1}", "'command' is missing"),
    ]:
        assert problems_of(f"{SOUND}defaultAgent: {command}\n") == [(20, "defaultAgent", message)]


@pytest.mark.parametrize(
    ("field", "path", "message"),
    [
        ("command: [a]", ".command", "must be text, not a list"),
        ("command: ' a'", ".command", "the command starts or ends with a blank"),
        ("protocol: flag", ".protocol", "no protocol is called 'flag'; did you mean 'flags'?"),
        ("protocol: 1", ".protocol", "must be text, not a number; write it in quotes"),
        ("timeout: 0", ".timeout", "must be a number of seconds, above 0 and at most a year"),
        ("timeout: -1", ".timeout", "must be a number of seconds, above 0 and at most a year"),
        ("timeout: 5m", ".timeout", "must be a number of seconds, above 0 and at most a year"),
        ("timeout: 1e300", ".timeout", "must be a number of seconds, above 0 and at most a year"),
        ("timeout: true", ".timeout", "must be a number of seconds, above 0 and at most a year"),
        ("retries: -1", ".retries", "must be a whole number, 0 or more"),
        ("retries: 1.5", ".retries", "must be a whole number, 0 or more"),
        ("retries: true", ".retries", "must be a whole number, 0 or more"),
        ("env: [A]", ".env", "must be a mapping from names to text, not a list"),
        ("env: {A: 1}", ".env.A", "must be text, not a number; write it in quotes"),
        ("env: {A: }", ".env.A", "must be text, not empty"),
        ("env: {A-B: x}", ".env.A-B", "'A-B' cannot be the name of an environment variable"),
        ("env: {'A=B': x}", ".env['A=B']", "'A=B' cannot be the name of an environment variable"),
        ('env: {A: "x\\0"}', ".env.A", "A has a NUL character in its value"),
        ("env: {UWF_ROLE: x}", ".env.UWF_ROLE", "UWF_ROLE is set by uwf itself"),
        ("tiemout: 1", ".tiemout", "unknown key 'tiemout'; did you mean 'timeout'?"),
    ],
)
def test_wrong_setting_is_reported_with_its_place(field: str, path: str, message: str) -> None:
    other = "" if field.startswith("command") else "    command: a\n"
    text = f"{SOUND}agentOverrides:\n  writer:\n    {field}\n{other}"
    assert problems_of(text) == [(22, f"agentOverrides.writer{path}", message)]


def test_setting_that_looks_secret_is_refused() -> None:
    for name in [
        "API_KEY",
        "OPENAI_APIKEY",
        "api_key",
        "KEY",
        "SSH_KEY_FILE",
        "GH_TOKEN",
        "TOKEN",
        "DB_PASS",
        "CLIENT_SECRET",
        "SECRETS",
        "DB_PASSWORD",
        "PGPASSWORD",
        "AWS_CREDENTIALS",
        "GITHUB_PAT",
    ]:
        [(line, path, message)] = problems_of(
            f"{SOUND}defaultAgent:\n  command: a\n  env: {{{name}: x}}"
        )
        assert (line, path) == (22, f"defaultAgent.env.{name}")
        assert message == f"{name} looks secret; leave it in the environment, which agents inherit"


@pytest.mark.parametrize(
    "name", ["MAX_TOKENS", "TOKENIZERS_PARALLELISM", "KEYBOARD", "PATH", "PWD", "UWF_MODEL", "_a1"]
)
def test_plain_setting_is_taken(name: str) -> None:
    agent = read(f"{SOUND}defaultAgent: {{command: a, env: {{{name}: x}}}}\n").default_agent
    assert agent is not None
    assert agent.env == {name: "x"}


def test_override_for_a_missing_role_is_reported() -> None:
    assert problems_of(f"{SOUND}agentOverrides:\n  writr: a\n") == [
        (21, "agentOverrides.writr", "no role is called 'writr'; did you mean 'writer'?")
    ]


def test_overrides_that_are_a_list_are_reported() -> None:
    assert problems_of(f"{SOUND}agentOverrides: [a]\n") == [
        (20, "agentOverrides", "must be a mapping from roles to agents, not a list")
    ]


def test_override_without_an_agent_is_reported() -> None:
    assert problems_of(f"{SOUND}agentOverrides: {{writer: }}\n") == [
        (20, "agentOverrides.writer", "must be a command or a mapping with one, not empty")
    ]


@pytest.mark.parametrize("backoff", [0, 1.5, 3600])
def test_wait_between_two_tries_is_read(backoff: float) -> None:
    agent = read(f"{SOUND}defaultAgent: {{command: a, retries: 2, backoff: {backoff}}}\n")

    assert agent.default_agent is not None
    assert agent.default_agent.as_payload() == {"command": "a", "retries": 2, "backoff": backoff}


@pytest.mark.parametrize("backoff", ["-1", "3601", "1m", "true", "[1]"])
def test_invalid_wait_is_reported(backoff: str) -> None:
    assert problems_of(f"{SOUND}defaultAgent:\n  command: a\n  backoff: {backoff}\n") == [
        (22, "defaultAgent.backoff", "must be a number of seconds, 0 or more, at most an hour")
    ]
