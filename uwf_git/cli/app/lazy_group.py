"""Groups of commands whose modules are imported only when they run.

Help, completion and the refusal of a name import no command, since each step of a workflow is a
process of its own; a test checks each summary against the command's own help.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click

from uwf_git.cli.app.help_page import (
    write_all_exits,
    write_brief_ending,
    write_examples,
    write_options,
)
from uwf_git.cli.app.options import shared_options
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import write_stdout
from uwf_git.errors import BadUsage

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_NO_SECTIONS: Mapping[str, Sequence[str]] = {}


class LazyCommand(NamedTuple):
    """Where a command is defined, and the first line of its help page."""

    target: str
    """``package.module:attribute``."""

    summary: str
    hidden: bool = False
    """Leave it out of help and completion: other programs call it."""

    @property
    def module(self) -> str:
        """Return the module that defines the command."""
        return self.target.partition(":")[0]

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self.target.partition(":")
        found = getattr(import_module(module), attribute)
        if not isinstance(found, click.Command):
            raise TypeError(f"{self.target} is not a command")
        return found


def _no_such_command(group: str, given: str, *, nearest: Sequence[str]) -> BadUsage:
    there = f"`{group} --help` lists what there is"
    meant = " or ".join(f"`{name}`" for name in nearest)
    return BadUsage(
        f"{group} has no command {given[:60]!r}",
        code="no-such-command",
        hint=f"did you mean {meant}? {there}" if nearest else there,
        given=given[:60],
        nearest=list(nearest),
    )


def no_command_given(group: str, names: Sequence[str]) -> BadUsage:
    """Tell that a group was named without a command."""
    return BadUsage(
        f"{group} needs a command",
        code="no-command-given",
        hint=f"one of {', '.join(names)}; `{group} --help` says what they do",
        choices=list(names),
    )


class LazyGroup(click.Group):
    """A group whose commands are entries of a table; nested groups are objects."""

    def __init__(
        self,
        name: str,
        table: Mapping[str, "LazyCommand | LazyGroup"],
        *,
        help_text: str,
        examples: Sequence[str],
        sections: Mapping[str, Sequence[str]] = _NO_SECTIONS,
    ) -> None:
        """Create it; *sections* has the commands by what they are for, as the help page shows them.

        Those that are in none stand at its end.
        """
        super().__init__(
            name,
            help=help_text,
            params=list(shared_options()),
            callback=_need_command,
            invoke_without_command=True,
            subcommand_metavar="COMMAND [ARGS]...",
        )
        self.table = table
        self.examples = examples
        self.sections = sections

    @property
    def summary(self) -> str:
        """Return the first line of the help, for the table of the group around this one."""
        return (self.help or "").partition("\n")[0].removesuffix(".")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names in the order of the table, which is the order of use."""
        del ctx  # the same in every context
        return [name for name, _entry in self._shown()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, None if the table does not have it."""
        del ctx  # the same in every context
        entry = self.table.get(cmd_name)
        return entry.load() if isinstance(entry, LazyCommand) else entry

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that *args* begin with, and its own arguments."""
        name = args[0]
        found = self.get_command(ctx, name)
        if found is None and not ctx.resilient_parsing:
            self._refuse(ctx, name)
        return (name if found else None), found, args[1:]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table; at the end of the program's own page, all options."""
        self.format_commands(ctx, formatter)
        if ctx.parent is None:
            write_options(formatter, ctx, self.get_params(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table, by section."""
        del ctx  # the same in every context
        shown = dict(self._shown())
        width = max(map(len, shown))
        named = {name for names in self.sections.values() for name in names}
        others = [name for name in shown if name not in named]
        rest = {"More" if named else "Commands": others} if others else {}
        for title, names in {**self.sections, **rest}.items():
            rows = [(name.ljust(width), shown[name].summary) for name in names if name in shown]
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples and exit statuses, and, unless it was done above, the options."""
        super().format_epilog(ctx, formatter)
        write_examples(formatter, self.examples)
        if ctx.parent is None:
            write_all_exits(formatter)
        else:
            write_brief_ending(formatter, ctx, shared_options(), {})

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete a name from the table, or an option."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 (2 ms; few complete)

        names = [
            CompletionItem(name, help=entry.summary)
            for name, entry in self._shown()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def _shown(self) -> list[tuple[str, "LazyCommand | LazyGroup"]]:
        """Return the entries that are not hidden."""
        return [(name, entry) for name, entry in self.table.items() if not entry.hidden]

    def _refuse(self, ctx: click.Context, given: str) -> NoReturn:
        from difflib import get_close_matches  # noqa: PLC0415 (only mistakes need it)

        from uwf_git.cli.app.spellings import find_meant  # noqa: PLC0415 (as above)

        names = [name for name, _entry in self._shown()]
        near = get_close_matches(given.lower(), names, n=3, cutoff=0.6)
        # People first type `uwf step` for `uwf thread step`.
        nested = [
            f"{name} {given}"
            for name, entry in self.table.items()
            if isinstance(entry, LazyGroup) and given in entry.table
        ]
        path = ctx.command_path
        meant = find_meant(path, given)
        nearest = meant or [f"{path} {name}" for name in nested + near]
        raise _no_such_command(path, given, nearest=nearest)


def _need_command() -> None:
    """Refuse a group without a command; click calls this for every group on the way to a verb.

    A person gets its help page.
    """
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None and isinstance(ctx.command, LazyGroup):
        if isinstance(ctx.obj, Session) and ctx.obj.is_screen:
            write_stdout(ctx.get_help() + "\n")
            ctx.exit(BadUsage.exit_status)
        raise no_command_given(ctx.command_path, ctx.command.list_commands(ctx))
