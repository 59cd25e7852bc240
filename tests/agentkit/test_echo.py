import json

from agentkit.conftest import MakeContext, Turn

from uwf_git.agentkit.echo import echo
from uwf_git.engine.prompt import build_prompt


def test_echo_answers_with_the_question(context: MakeContext) -> None:
    result = echo(context(visit=2, attempt=3))

    assert result.meta == {
        "echo": "Fix the login bug described in issue #42.\n",
        "role": "reviewer",
        "visit": 2,
        "attempt": 3,
    }
    assert result.content == build_prompt(context(visit=2, attempt=3))


def test_echo_is_a_program(turn: Turn) -> None:
    ran = turn.python("-m", "uwf_git.agentkit.echo", turn.thread)

    assert (ran.status, ran.err) == (0, "")
    assert json.loads(ran.out)["meta"]["echo"] == "one two three"
