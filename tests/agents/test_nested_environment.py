import pytest

from uwf_git.agentkit.programs.playing import PROVIDER_VARIABLES
from uwf_git.agents.nested import allowed_environment

MARKERS = ["CLAUDECODE", "COPILOT_CLI", "GIT_DIR", "GIT_INDEX_FILE", "UWF_LLM_API_KEY"]
SECRETS = ["GITHUB_TOKEN", "AZURE_CLIENT_SECRET", "NPM_TOKEN"]
OF_PROVIDERS = ["OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "AWS_SESSION_TOKEN"]


@pytest.mark.parametrize(
    ("names", "more", "passed"),
    [
        ([*MARKERS, "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "HOMER"], (), []),
        ([*OF_PROVIDERS, *SECRETS, "CLAUDECODE"], PROVIDER_VARIABLES, OF_PROVIDERS),
        (["ANTHROPIC_API_KEY", "IS_SANDBOX", "OPENAI_API_KEY"], ("ANTHROPIC_*", "IS_SANDBOX"),
         ["ANTHROPIC_API_KEY", "IS_SANDBOX"]),
        # A beginning does not bring a marker along.
        (["CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_MAX_RETRIES"], ("CLAUDE_*",),
         ["CLAUDE_CODE_MAX_RETRIES"]),
    ],
    ids=["nothing", "providers", "own", "markers"],
)  # fmt: skip
def test_program_gets_what_it_may_have_and_no_more(
    names: list[str], more: tuple[str, ...], passed: list[str]
) -> None:
    allowed = allowed_environment(dict.fromkeys(names, "x"), more=more)

    assert allowed == dict.fromkeys(passed, "x")
