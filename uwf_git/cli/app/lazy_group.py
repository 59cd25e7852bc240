"""Groups of commands whose modules are imported only when they run.

Help, completion and the refusal of a name import no command, since each step of a workflow is a
process of its own; a test checks each summary against the command's own help.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem, get_completion_class

from uwf_git.cli.app.guard import failure, run_guarded
from uwf_git.cli.session import (
    FORMAT_VARIABLE,
    FORMATS,
    Format,
    Session,
    installed_version,
    note_typed_store,
    read_session,
    write_stdout,
)
from uwf_git.errors import BadUsage
from uwf_git.model.limits import LIMITS

if TYPE_CHECKING:
    from uwf_git.store.store import Store

# The parts of help pages: options, examples, and the meaning of the exit statuses.
#
# Promise to scripts: new statuses may come, and an unknown one means failure. `errors.py` has the
# number of each kind of error.

EXIT_STATUS: Mapping[int, str] = {
    0: "done",
    1: "refused: the state does not allow it, or there is no such thing",
    2: "wrong usage of the command",
    3: "the agent failed, timed out, or broke its schema",
    4: "busy, or another process was faster: it is safe to try again",
    5: "the store is damaged",
    70: "a bug in this program: the hint names the crash log",
    130: "interrupted",
    141: "the reader of the output left early",
}

_IN_BRIEF: Mapping[int, str] = {
    0: "done",
    1: "refused",
    2: "wrong usage",
    5: "damaged",
    70: "bug",
    130: "interrupted",
}


def write_options(
    formatter: click.HelpFormatter, ctx: click.Context, params: Sequence[click.Parameter]
) -> None:
    """Write the options of *params* with their help, the limits of a thread as one group."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for param in params:
        # Newer versions of click have help of arguments too.
        record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if record is not None:
            groups.setdefault("Limits" if param.name in LIMITS else "Options", []).append(record)
    for title, records in groups.items():
        with formatter.section(title):
            formatter.write_dl(records)


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    """Write the examples, one command line each."""
    if examples:
        with formatter.section("EXAMPLE" if len(examples) == 1 else "EXAMPLES"):
            for example in examples:
                formatter.write(f"{' ' * formatter.current_indent}{example}\n")


def write_brief_ending(
    formatter: click.HelpFormatter, ctx: click.Context, exits: Mapping[int, str]
) -> None:
    """Write the exit statuses, and the shared options by their names: the program's page has them.

    *exits* says in a verb's own words what a status means.
    """
    with formatter.section("EXIT STATUS"):
        if exits:
            formatter.write_dl([(str(status), meaning) for status, meaning in exits.items()])
        brief = (f"{each} {word}" for each, word in _IN_BRIEF.items() if each not in exits)
        formatter.write_text(" · ".join(brief))
    with formatter.section(f"SHARED OPTIONS (`{ctx.find_root().info_name} --help` explains them)"):
        formatter.write_text(" · ".join(_spell(option, ctx) for option in shared_options()))


def _spell(option: click.Option, ctx: click.Context) -> str:
    value = "" if option.is_flag else f" {option.make_metavar(ctx).strip('[]')}"
    return ", ".join(option.opts) + value


# The options that every command takes, before or after its name.
#
# `uwf --format text thread list` and `uwf thread list --format text` are the same; the last one
# counts. The values go into the session, not into a command's arguments.


def shared_options() -> list[click.Option]:
    """Create the options that groups and verbs share; click wants new ones for each command."""
    return [
        _shared(
            "--repo",
            metavar="PATH",
            help="The store: a git directory.  [default: $UWF_REPO, else the nearest, else "
            "~/.uwf/store.git]",
        ),
        _shared(
            "--format",
            type=click.Choice(FORMATS),
            help="The format of the result.  [default: $UWF_FORMAT; else text at a terminal, or "
            "as uwf.format says there; else, and for agents, json]",
        ),
        _shared(
            "--utc",
            is_flag=True,
            help="Show times in UTC, as in JSON, and not as this machine has them.",
        ),
        _shared(
            "--debug",
            is_flag=True,
            help="Log to standard error, one JSON object per line.  [default: "
            "$UWF_DEBUG: 1, or a file to append to]",
            callback=_log_debug,
        ),
        # Click's own --help would bypass `streams`.
        _shared(
            "-h",
            "--help",
            is_flag=True,
            is_eager=True,
            callback=_print_help,
            help="Show this message and exit.",
        ),
    ]


def _shared(*names: str, **how: Any) -> click.Option:
    name = f"shared_{names[-1].removeprefix('--')}"
    return click.Option([*names, name], expose_value=False, **{"callback": _change_session, **how})


def is_shared(param: click.Parameter) -> bool:
    """Return whether *param* is one of the shared options."""
    return (param.name or "").startswith("shared_")


def version_option() -> click.Option:
    """Create the `--version` option of a program."""
    return click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Print the version and exit.",
    )


def explicit_format(words: Iterable[str]) -> Format | None:
    """Return the format that a command line requests, None if none.

    Errors need it before click has parsed the command line, and when it cannot.
    """
    chosen: Format | None = None
    rest = takewhile(lambda word: word != "--", words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name == "--format":
            asked = value if equals else next(rest, "")
            if asked in FORMATS:
                chosen = asked
    return chosen


def _change_session(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value == "":
        raise click.BadParameter("it needs a path", ctx=ctx, param=param)
    if value and isinstance(ctx.obj, Session):
        if param.name == "shared_repo":
            note_typed_store(value)
        ctx.obj = ctx.obj._replace(**_CHANGES[param.name or ""](value))


_CHANGES: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "shared_repo": lambda path: {"repo": path},
    "shared_format": lambda name: {"output_format": name, "may_configure_format": False},
    "shared_utc": lambda is_utc: {"is_utc": is_utc},
}


def _log_debug(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 (click calls it so)
    """Switch the debug log on, also for the processes of this session."""
    del param  # click passes it to every callback
    session = ctx.obj
    if ctx.resilient_parsing or not isinstance(session, Session):
        return
    # The environment counts once, at the program's own options; a flag wherever it stands.
    if value or (ctx.parent is None and session.environ.get("UWF_DEBUG")):
        from uwf_git.commands.admin import switch_on_debug_log  # noqa: PLC0415 (10 ms, and few ask for it)
        from uwf_git.debug_log import switch_off  # noqa: PLC0415 (see above)

        environ = switch_on_debug_log(session.environ, cwd=session.cwd, is_asked=value)
        ctx.obj = session._replace(environ=environ)
        # A program that embeds this one runs other commands afterwards.
        ctx.find_root().call_on_close(switch_off)


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 (click calls it so)
    del param  # click passes it to every callback
    if value and not ctx.resilient_parsing:
        write_stdout(f"{ctx.command_path} {installed_version()}\n")
        ctx.exit()


def _print_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 (click calls it so)
    del param  # click passes it to every callback
    if value and not ctx.resilient_parsing:
        write_stdout(ctx.get_help() + "\n")
        ctx.exit()


# The boundary: run the command that a program's words name, then what follows a command.
#
# `run` returns an exit status and never raises.


def run(
    group: click.Group,
    words: Sequence[str],
    *,
    prog: str,
    environ: Mapping[str, str],
    session: Session | None = None,
) -> int:
    """Run the command that *words* name, and return the exit status of the process.

    *session* replaces the one read from *environ*: tests bring their own clock and ids.
    """
    opened: list[Store] = []

    def invoke() -> int:
        note_typed_store("")
        given = (session or read_session(environ))._replace(opened=opened, held=held)
        return _invoke(group, words, prog=prog, session=given)

    def as_json() -> bool:
        return (explicit_format(words) or environ.get(FORMAT_VARIABLE, "")).lower() == "json"

    def let_go() -> int:
        held.close()
        return status

    held = ExitStack()
    status = run_guarded(invoke, environ=environ, as_json=as_json)
    status = run_guarded(let_go, environ=environ, as_json=as_json)
    if opened:
        # Also after a failure: an attempt is a transition. Nothing here changes the exit status.
        run_guarded(lambda: _follow_up(opened, environ), environ=environ, as_json=as_json)
    return status


def _follow_up(opened: "list[Store]", environ: Mapping[str, str]) -> int:
    from uwf_git.cli.app.follow_up import follow_up_noted  # noqa: PLC0415 (no command but one that wrote)

    # Ctrl-C ends the listener; the command is done.
    with suppress(KeyboardInterrupt):
        for store in opened:
            follow_up_noted(store, environ)
    return 0


def _invoke(group: click.Group, words: Sequence[str], *, prog: str, session: Session) -> int:
    variable = f"_{prog.replace('-', '_').upper()}_COMPLETE"
    if question := session.environ.get(variable):
        return _complete(group, session, prog=prog, asked=(variable, question))
    try:
        with group.make_context(prog, list(words), obj=session) as context:
            group.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    return 0


def _complete(group: click.Group, session: Session, *, prog: str, asked: tuple[str, str]) -> int:
    """Answer the shell's completion request; all else is silent, since the user is typing."""
    variable, question = asked
    shell, _, what = question.partition("_")
    made = get_completion_class(shell)
    if made is None or what != "complete":
        return 1
    try:
        answer = made(group, {"obj": session._replace(opened=None)}, prog, variable).complete()
    except Exception:  # noqa: BLE001 (see the docstring)
        return 1
    write_stdout(answer + "\n")
    return 0


class LazyCommand(NamedTuple):
    """Where a command is defined, and the first line of its help page."""

    target: str
    """``package.module:attribute``."""

    summary: str
    hidden: bool = False
    """Leave it out of help and completion: other programs call it."""

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self.target.partition(":")
        found: click.Command = getattr(import_module(module), attribute)
        return found


def own(target: str, summary: str, *, hidden: bool = False) -> LazyCommand:
    """Return a command of this package; *target* is its place below ``uwf_git.cli``."""
    return LazyCommand(f"uwf_git.cli.{target}", summary, hidden=hidden)


class LazyGroup(click.Group):
    """A group whose commands are entries of a table; nested groups are objects."""

    def __init__(
        self,
        name: str,
        table: Mapping[str, "LazyCommand | LazyGroup"],
        *,
        help_text: str,
        examples: Sequence[str],
        sections: Mapping[str, Sequence[str]] = {},
    ) -> None:
        """Create it; *sections* has the commands by what they are for, as the help page shows them.

        Those that are in none stand at its end.
        """
        super().__init__(
            name,
            help=help_text,
            params=shared_options(),
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
        if args[0] not in self.table and not ctx.resilient_parsing:
            self._refuse(ctx, args[0])
        return super().resolve_command(ctx, args)

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
            with formatter.section("EXIT STATUS"):
                formatter.write_dl([(str(each), told) for each, told in EXIT_STATUS.items()])
        else:
            write_brief_ending(formatter, ctx, {})

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete a name from the table, or an option."""
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
        # People first type `uwf step` for `uwf thread step`.
        nested = [
            f"{name} {given}"
            for name, entry in self.table.items()
            if isinstance(entry, LazyGroup) and given in entry.table
        ]
        group = ctx.command_path
        nearest = failure.find_meant(group, given, names=self.list_commands(ctx), nested=nested)
        meant = " or ".join(f"`{name}`" for name in nearest)
        there = f"`{group} --help` lists what there is"
        raise BadUsage(
            f"{group} has no command {given[:60]!r}",
            code="no-such-command",
            hint=f"did you mean {meant}? {there}" if nearest else there,
            given=given[:60],
            nearest=list(nearest),
        )


def _need_command() -> None:
    """Refuse a group without a command; click calls this for every group on the way to a verb.

    A person gets its help page.
    """
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None and isinstance(ctx.command, LazyGroup):
        if isinstance(ctx.obj, Session) and ctx.obj.is_screen:
            write_stdout(ctx.get_help() + "\n")
            ctx.exit(BadUsage.exit_status)
        group, names = ctx.command_path, ctx.command.list_commands(ctx)
        raise BadUsage(
            f"{group} needs a command",
            code="no-command-given",
            hint=f"one of {', '.join(names)}; `{group} --help` says what they do",
            choices=names,
        )
