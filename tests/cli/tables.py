"""What must hold of every table of commands, `uwf`'s and `json-cas`'s alike."""

from collections.abc import Iterator
from importlib.util import find_spec

import click
import pytest

from uwf_git.cli.lazy_group import LazyCommand, LazyGroup


def entries(group: LazyGroup, path: str) -> Iterator[tuple[str, LazyCommand | LazyGroup]]:
    """Give every entry of *group* and of the groups in it, with the words that lead there."""
    for name, entry in group.table.items():
        yield f"{path} {name}", entry
        if isinstance(entry, LazyGroup):
            yield from entries(entry, f"{path} {name}")


def load(entry: LazyCommand | LazyGroup) -> click.Command:
    """Give the command of *entry*; skip the test, naming the module, if it is not written yet."""
    if isinstance(entry, LazyGroup):
        return entry
    if find_spec(entry.module) is None:
        pytest.skip(f"{entry.module} is not written yet")
    return entry.load()


def summary_of(command: click.Command) -> str:
    """Give the first line of a command's own help, as a summary has it."""
    return (command.help or "").strip().partition("\n")[0].removesuffix(".")


def help_of(command: click.Command, path: str) -> str:
    """Give a command's whole help page."""
    with click.Context(command, info_name=path, max_content_width=200) as context:
        return command.get_help(context)


def check_command(path: str, entry: LazyCommand | LazyGroup) -> None:
    """Hold a command against its table, and against what every help page must have."""
    command = load(entry)
    page = help_of(command, path)

    assert entry.summary == summary_of(command)
    assert entry.summary
    assert entry.summary[0].isupper()
    assert "EXAMPLE" in page
    assert path in page.partition("EXAMPLE")[2]
    assert "EXIT STATUS:\n  0 " in page
    assert "--repo PATH" in page
    assert "--format" in page
