import click
import pytest
from click.testing import CliRunner

from uwf_git.cli.output.table import Count, limit_option


@click.command()
@limit_option()
@click.option("--offset", type=Count(0), default=0)
def count(limit: int | None, offset: int) -> None:
    click.echo(f"{limit} {offset}")


@pytest.mark.parametrize(
    ("words", "told"), [("", "None 0"), ("--limit 7", "7 0"), ("--offset 0", "None 0")]
)
def test_number_is_taken_as_it_is(words: str, told: str) -> None:
    assert CliRunner().invoke(count, words.split()).output == f"{told}\n"


def test_huge_number_means_all() -> None:
    digits = "9" * 40

    ran = CliRunner().invoke(count, ["--limit", digits, "--offset", digits])

    limit, offset = map(int, ran.output.split())
    assert list(range(10))[offset : offset + limit] == []
    assert len(range(limit + offset)) == limit + offset


@pytest.mark.parametrize("words", ["--limit 0", "--limit x", "--offset -1"])
def test_invalid_count_is_refused(words: str) -> None:
    assert CliRunner().invoke(count, words.split()).exit_code == 2
