import click

from uwf_git.cli.app.lazy_group import EXIT_STATUS, write_examples
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


def test_page_without_examples_has_no_heading_for_them() -> None:
    formatter = click.HelpFormatter()

    write_examples(formatter, [])

    assert formatter.getvalue() == ""
