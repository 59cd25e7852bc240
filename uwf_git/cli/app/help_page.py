"""The parts of help pages: options, examples, and the meaning of the exit statuses.

Promise to scripts: new statuses may come, and an unknown one means failure. `errors.py` has the
number of each kind of error.
"""

from collections.abc import Mapping, Sequence

import click

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
    from uwf_git.model.limits import LIMITS  # noqa: PLC0415 (only help needs it)

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
            indent = " " * formatter.current_indent
            for example in examples:
                formatter.write(f"{indent}{example}\n")


def write_all_exits(formatter: click.HelpFormatter) -> None:
    """Write what each exit status means."""
    with formatter.section("EXIT STATUS"):
        formatter.write_dl([(str(status), meaning) for status, meaning in EXIT_STATUS.items()])


def write_brief_ending(
    formatter: click.HelpFormatter,
    ctx: click.Context,
    shared: Sequence[click.Option],
    exits: Mapping[int, str],
) -> None:
    """Write the exit statuses and the *shared* options, which the page of the program explains.

    *exits* says in a verb's own words what a status means.
    """
    with formatter.section("EXIT STATUS"):
        if exits:
            formatter.write_dl([(str(status), meaning) for status, meaning in exits.items()])
        brief = (f"{each} {word}" for each, word in _IN_BRIEF.items() if each not in exits)
        formatter.write_text(" · ".join(brief))
    names = [_spell(option, ctx) for option in shared]
    with formatter.section(f"SHARED OPTIONS (`{ctx.find_root().info_name} --help` explains them)"):
        formatter.write_text(" · ".join(names))


def _spell(option: click.Option, ctx: click.Context) -> str:
    value = "" if option.is_flag else f" {option.make_metavar(ctx).strip('[]')}"
    return ", ".join(option.opts) + value
