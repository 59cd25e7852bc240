import click

from uwf_git.cli.app.lazy_group import (
    EXIT_STATUS,
    shared_options,
    write_brief_ending,
    write_examples,
)
from uwf_git.errors import (
    AgentFailed,
    BadUsage,
    Conflict,
    Refused,
    StoreDamaged,
    StoreFailed,
)


def test_every_kind_of_error_has_its_status_explained() -> None:
    kinds = (Refused, BadUsage, AgentFailed, Conflict, StoreDamaged, StoreFailed)

    assert {kind.exit_status for kind in kinds} <= EXIT_STATUS.keys()


def written(exits: dict[int, str], *, width: int = 78) -> str:
    formatter = click.HelpFormatter(width=width)
    with click.Context(click.Command("uwf"), info_name="uwf") as context:
        write_brief_ending(formatter, context, shared_options(), exits)
    return formatter.getvalue()


def test_own_words_come_first_and_all_else_is_one_line_each() -> None:
    assert written({4: "busy", 0: "well done"}) == (
        "EXIT STATUS:\n"
        "  4  busy\n"
        "  0  well done\n"
        "  1 refused · 2 wrong usage · 5 damaged · 70 bug · 130 interrupted\n"
        "\n"
        "SHARED OPTIONS (`uwf --help` explains them):\n"
        "  --repo PATH · --format json|yaml|text · --utc · --debug · -h, --help\n"
    )
    assert written({}).startswith("EXIT STATUS:\n  0 done · 1 refused · ")


def test_page_without_examples_has_no_heading_for_them() -> None:
    formatter = click.HelpFormatter()

    write_examples(formatter, [])

    assert formatter.getvalue() == ""
