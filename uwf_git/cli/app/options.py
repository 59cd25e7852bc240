"""The options that every command takes, before or after its name.

`uwf --format text thread list` and `uwf thread list --format text` are the same; the last one
counts. The values go into the session, not into a command's arguments.
"""

from collections.abc import Iterable
from itertools import takewhile

import click

from uwf_git.cli.session.settings import FORMATS, Format, Session
from uwf_git.cli.session.streams import write_stdout


def shared_options() -> list[click.Option]:
    """Create the options that groups and verbs share; click wants new ones for each command."""
    return [
        click.Option(
            ["--repo", "shared_repo"],
            metavar="PATH",
            help="The store: a git directory.  [default: $UWF_REPO, else the nearest, else "
            "~/.uwf/store.git]",
            callback=_name_repo,
            expose_value=False,
        ),
        click.Option(
            ["--format", "shared_format"],
            type=click.Choice(FORMATS),
            help="The format of the result.  [default: $UWF_FORMAT; else text at a terminal, or "
            "as uwf.format says there; else, and for agents, json]",
            callback=_choose_format,
            expose_value=False,
        ),
        click.Option(
            ["--utc", "shared_utc"],
            is_flag=True,
            help="Show times in UTC, as in JSON, and not as this machine has them.",
            callback=_choose_utc,
            expose_value=False,
        ),
        click.Option(
            ["--debug", "shared_debug"],
            is_flag=True,
            help="Log to standard error, one JSON object per line.  [default: "
            "$UWF_DEBUG: 1, or a file to append to]",
            callback=_log_debug,
            expose_value=False,
        ),
        # Click's own --help would bypass `streams`.
        click.Option(
            ["-h", "--help", "shared_help"],
            is_flag=True,
            is_eager=True,
            callback=_print_help,
            expose_value=False,
            help="Show this message and exit.",
        ),
    ]


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


def _name_repo(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value == "":
        raise click.BadParameter("it needs a path", ctx=ctx, param=param)
    if value is not None and isinstance(ctx.obj, Session):
        ctx.obj = ctx.obj._replace(repo=value)


def _choose_format(ctx: click.Context, param: click.Parameter, value: Format | None) -> None:
    del param  # click passes it to every callback
    if value is not None and isinstance(ctx.obj, Session):
        ctx.obj = ctx.obj._replace(output_format=value, may_configure_format=False)


def _choose_utc(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 (click calls it so)
    del param  # click passes it to every callback
    if value and isinstance(ctx.obj, Session):
        ctx.obj = ctx.obj._replace(is_utc=True)


def _log_debug(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 (click calls it so)
    """Switch the debug log on, also for the processes of this session."""
    del param  # click passes it to every callback
    session = ctx.obj
    if ctx.resilient_parsing or not isinstance(session, Session):
        return
    # The environment counts once, at the program's own options; a flag wherever it stands.
    if value or (ctx.parent is None and session.environ.get("UWF_DEBUG")):
        from uwf_git.commands.admin.debug_output import (  # noqa: PLC0415 (10 ms, and few ask for it)
            switch_on_debug_log,
        )
        from uwf_git.debug_log import switch_off  # noqa: PLC0415 (see above)

        environ = switch_on_debug_log(session.environ, cwd=session.cwd, is_asked=value)
        ctx.obj = session._replace(environ=environ)
        # A program that embeds this one runs other commands afterwards.
        ctx.find_root().call_on_close(switch_off)


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 (click calls it so)
    del param  # click passes it to every callback
    if not value or ctx.resilient_parsing:
        return
    from uwf_git.cli.session.installed_version import (  # noqa: PLC0415 (importlib.metadata: 30 ms)
        installed_version,
    )

    write_stdout(f"{ctx.command_path} {installed_version()}\n")
    ctx.exit()


def _print_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 (click calls it so)
    del param  # click passes it to every callback
    if value and not ctx.resilient_parsing:
        write_stdout(ctx.get_help() + "\n")
        ctx.exit()
