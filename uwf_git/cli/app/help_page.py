"""The last part of every help page: examples, and the meaning of the exit statuses.

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

ALWAYS_POSSIBLE = (0, 1, 2, 5, 70, 130)


def exit_table(own_words: Mapping[int, str]) -> dict[int, str]:
    """Return the statuses of one command: those always possible, and its *own_words*."""
    table = {status: EXIT_STATUS[status] for status in ALWAYS_POSSIBLE}
    return dict(sorted({**table, **own_words}.items()))


def write_ending(
    formatter: click.HelpFormatter, examples: Sequence[str], exits: Mapping[int, str]
) -> None:
    """Write the examples, one command line each, and the exit statuses."""
    if examples:
        with formatter.section("EXAMPLE" if len(examples) == 1 else "EXAMPLES"):
            indent = " " * formatter.current_indent
            for example in examples:
                formatter.write(f"{indent}{example}\n")
    with formatter.section("EXIT STATUS"):
        formatter.write_dl([(str(status), meaning) for status, meaning in exits.items()])
