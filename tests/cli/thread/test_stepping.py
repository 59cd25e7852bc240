import click
from cli.program import Uwf
from click.testing import CliRunner

from uwf_git.cli.thread.step import Stepping, step_options


def test_options_become_one_value() -> None:
    @click.command()
    @step_options
    def command(stepping: Stepping) -> None:
        click.echo(repr(tuple(stepping)))

    def given(*words: str) -> str:
        return CliRunner().invoke(command, words).output.strip()

    assert given() == "((), None, False, 4)"
    words = ("--agent", "a b", "--agent", "r=c", "--workdir", "/", "--trust")
    assert given(*words) == "(('a b', 'r=c'), '/', True, 4)"


def test_log_of_the_agent_comes_before_the_document(uwf: Uwf) -> None:
    thread = uwf.begun(
        uwf.agent("""echo half >&2; printf end >&2; echo '{"meta": {"text": ""}}'""")
    )

    ran = uwf("thread", "step", thread)

    assert ran.status == 0
    assert ran.err == "half\nend\n"
    assert ran.out.startswith('{"workflow":')
