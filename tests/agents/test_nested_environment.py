import pytest

from uwf_git.agents.nested import allowed_environment

MARKERS = ["CLAUDECODE", "COPILOT_CLI", "GIT_DIR", "GIT_INDEX_FILE", "UWF_LLM_API_KEY"]


@pytest.mark.parametrize("name", [*MARKERS, "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "HOMER"])
def test_other_variables_are_not_passed_on(name: str) -> None:
    assert allowed_environment({name: "x"}, more=()) == {}


def test_program_gets_its_own_names_and_beginnings() -> None:
    environ = {"ANTHROPIC_API_KEY": "k", "IS_SANDBOX": "1", "OPENAI_API_KEY": "o"}

    allowed = allowed_environment(environ, more=("ANTHROPIC_*", "IS_SANDBOX"))

    assert allowed == {"ANTHROPIC_API_KEY": "k", "IS_SANDBOX": "1"}


def test_beginning_does_not_bring_a_marker_along() -> None:
    environ = {"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_MAX_RETRIES": "0"}

    assert allowed_environment(environ, more=("CLAUDE_*",)) == {"CLAUDE_CODE_MAX_RETRIES": "0"}
