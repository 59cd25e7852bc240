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


def test_page_without_examples_has_no_heading_for_them() -> None:
    formatter = click.HelpFormatter()

    write_examples(formatter, [])

    assert formatter.getvalue() == ""
