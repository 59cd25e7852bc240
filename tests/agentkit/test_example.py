"""The agent in the kit's own description runs as it stands there."""

import inspect
import json
import textwrap

from agentkit.conftest import Turn

import uwf_git.agentkit


def read_example() -> str:
    """Return the indented block of the package's docstring."""
    described = inspect.getdoc(uwf_git.agentkit) or ""
    block = described.split("::\n\n", 1)[1]
    lines = [line for line in block.splitlines() if not line or line.startswith("    ")]
    end = block.splitlines().index(next(x for x in block.splitlines() if x and x not in lines))
    return textwrap.dedent("\n".join(block.splitlines()[:end])).strip() + "\n"


def test_example_is_short() -> None:
    assert 10 < len(read_example().splitlines()) < 20


def test_example_runs(turn: Turn) -> None:
    (turn.place / "agent.py").write_text(read_example())

    ran = turn.python("agent.py", turn.thread)

    assert (ran.status, ran.err) == (0, "")
    answer = json.loads(ran.out)
    assert answer["meta"] == {"words": 3}
    assert "Count the words." in answer["content"]


def test_every_name_that_the_kit_promises_is_there() -> None:
    for name in uwf_git.agentkit.__all__:
        assert inspect.getdoc(getattr(uwf_git.agentkit, name)), name
