import os
import subprocess
import sys

import pytest
from agentkit.conftest import Turn
from refusing import refuses

from uwf_git.agentkit.turn import AgentArguments, load_context, parse_arguments
from uwf_git.errors import BadUsage, UwfError


def test_context_is_read_from_the_store(turn: Turn) -> None:
    environ = {"UWF_REPO": f"{turn.place}/store.git"}

    context = load_context(environ, [turn.thread])

    assert context.thread_id == turn.thread
    assert context.start.prompt == "one two three"
    assert context.current_role.name == "counter"
    # Where this process stands, not where the thread was started.
    assert context.workdir == os.getcwd() != str(turn.place)
    assert load_context(environ, ["-t", turn.thread, "-r", "counter"]) == context
    assert load_context(environ | {"UWF_HEAD": context.head}, ["x", turn.thread]) == context


def test_thread_that_has_moved_on_is_refused(turn: Turn) -> None:
    environ = {"UWF_REPO": f"{turn.place}/store.git", "UWF_HEAD": "2MXBG6PN4A8JR"}

    with refuses("thread-moved", match=r"not 2MXBG6PN4A8JR"):
        load_context(environ, [turn.thread])


def test_missing_thread_is_refused(turn: Turn) -> None:
    with pytest.raises(UwfError, match="01J00000000000000000000009"):
        load_context({"UWF_REPO": f"{turn.place}/store.git"}, ["01J00000000000000000000009"])


@pytest.mark.parametrize("environ", [{}, {"UWF_REPO": ""}])
def test_without_a_store_nothing_can_be_read(environ: dict[str, str]) -> None:
    with pytest.raises(BadUsage, match="UWF_REPO is not set"):
        load_context(environ, ["01J7K9M2XNPQR5VWBCDF8G3H4T"])


def test_kit_opens_no_store_before_it_has_to() -> None:
    heavy = {"dulwich", "jsonata", "jsonschema", "yaml", "click", "subprocess"}
    script = f"import sys, uwf_git.agentkit; print(sorted({heavy} & set(sys.modules)))"

    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout == "[]\n"


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
