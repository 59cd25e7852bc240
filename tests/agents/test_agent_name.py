import pytest

from uwf_git.agents.command_line import agent_name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("uwf-claude", "uwf-claude"),
        ("/usr/local/bin/uwf-claude --model x", "uwf-claude"),
        ("uwf-shell 'make test; rm -r /'", "uwf-shell"),
        ("'my agent' x", "my agent"),
        ("/", "unknown"),
        ("", "unknown"),
        ("'unclosed", "unknown"),
    ],
)
def test_name_is_the_program_alone(command: str, name: str) -> None:
    assert agent_name(command) == name
