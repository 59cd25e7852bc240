import pytest

from uwf_git.agentkit.arguments import AgentArguments, parse_arguments
from uwf_git.errors import BadUsage


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["T"], AgentArguments("T", None, ())),
        (["-t", "T", "-r", "dev"], AgentArguments("T", "dev", ())),
        (["-r", "dev", "-t", "T"], AgentArguments("T", "dev", ())),
        (["--thread", "T", "--role", "dev"], AgentArguments("T", "dev", ())),
        (["-t", "T"], AgentArguments("T", None, ())),
        (["--model", "x", "T"], AgentArguments("T", None, ("--model", "x"))),
        (["-t", "5", "cmd", "-t", "T", "-r", "-r"], AgentArguments("T", "-r", ("-t", "5", "cmd"))),
        (["a b", "", "T"], AgentArguments("T", None, ("a b", ""))),
    ],
)
def test_arguments_of_the_engine_are_distinguished_from_those_of_the_agent(
    argv: list[str], expected: AgentArguments
) -> None:
    assert parse_arguments(argv) == expected


@pytest.mark.parametrize("argv", [[], [""], ["-r", "dev"], ["-t", ""]])
def test_missing_thread_is_reported(argv: list[str]) -> None:
    with pytest.raises(BadUsage, match="no thread id was given") as caught:
        parse_arguments(argv)

    assert "<thread-id>" in str(caught.value.hint)
