"""Rules for every table of commands, `uwf`'s and `json-cas`'s alike."""

from collections.abc import Iterator

import click

from uwf_git.cli.app.lazy_group import LazyCommand, LazyGroup


def entries(group: LazyGroup, path: str) -> Iterator[tuple[str, LazyCommand | LazyGroup]]:
    """Yield every entry of *group* and its groups, with its words."""
    for name, entry in group.table.items():
        yield f"{path} {name}", entry
        if isinstance(entry, LazyGroup):
            yield from entries(entry, f"{path} {name}")


def load(entry: LazyCommand | LazyGroup) -> click.Command:
    """Return the command of *entry*."""
    return entry if isinstance(entry, LazyGroup) else entry.load()


def summary_of(command: click.Command) -> str:
    """Return the first line of a command's help, as in a summary."""
    return (command.help or "").strip().partition("\n")[0].removesuffix(".")


def help_of(command: click.Command, path: str) -> str:
    """Return a command's whole help page."""
    with click.Context(command, info_name=path, max_content_width=200) as context:
        return command.get_help(context)


def check_command(path: str, entry: LazyCommand | LazyGroup) -> None:
    """Check a command against its table, and against the rules for help pages."""
    command = load(entry)
    page = help_of(command, path)

    assert entry.summary == summary_of(command)
    assert entry.summary
    assert entry.summary[0].isupper()
    assert "EXAMPLE" in page
    assert path in page.partition("EXAMPLE")[2]
    assert "EXIT STATUS:\n  " in page
    assert "--repo PATH" in page
    assert "--format" in page
