import pytest

from uwf_git.agentkit.programs.provider_variables import PROVIDER_VARIABLES
from uwf_git.agents.nested import allowed_environment


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "AWS_SESSION_TOKEN"])
def test_variables_of_a_provider_are_passed_on(name: str) -> None:
    assert allowed_environment({name: "x"}, more=PROVIDER_VARIABLES) == {name: "x"}


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "AZURE_CLIENT_SECRET", "CLAUDECODE", "NPM_TOKEN"])
def test_other_secrets_and_marks_are_not(name: str) -> None:
    assert allowed_environment({name: "x"}, more=PROVIDER_VARIABLES) == {}
