import click

from uwf_git.cli.app.help_page import EXIT_STATUS, exit_table, write_ending
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


def test_own_words_win_and_the_order_is_that_of_the_numbers() -> None:
    table = exit_table({4: "busy", 0: "well done"})

    assert list(table) == [0, 1, 2, 4, 5, 70, 130]
    assert (table[0], table[4], table[5]) == ("well done", "busy", EXIT_STATUS[5])


def test_examples_are_never_wrapped() -> None:
    formatter = click.HelpFormatter(width=20)
    example = "uwf thread start solve-issue -p 'a long prompt that does not fit'"

    write_ending(formatter, [example, "b"], {0: "done"})

    assert formatter.getvalue() == f"EXAMPLES:\n  {example}\n  b\n\nEXIT STATUS:\n  0  done\n"


def test_page_without_examples_has_no_heading_for_them() -> None:
    formatter = click.HelpFormatter()

    write_ending(formatter, [], {0: "done"})

    assert formatter.getvalue().startswith("EXIT STATUS")
