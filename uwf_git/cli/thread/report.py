"""`uwf thread report`."""

import os
from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.paging import output_option, picture_options, print_picture, write_file
from uwf_git.cli.session import Session, stdout_is_utf8, write_stdout
from uwf_git.commands.inspect.graph import picture_thread, report_of_damage, view_report
from uwf_git.web.report import render_report


@verb(
    "uwf thread report 01J7K9M2 -o report.html",
    exits={
        1: "there is no such thread, or FILE cannot be written",
        5: "the thread is damaged; the report says what cannot be read",
    },
)
@click.argument("thread")
@output_option
def command(session: Session, thread: str, output: str | None) -> None:
    """Write a report of a thread, one HTML file.

    To keep or to send: the picture; every step with its answer, failed attempts, prompt, and what
    differs from the role's visit before; time, tokens and cost; branches; the commits, who signed
    them, and the git commands that check them. Keys are masked. The file has no script and loads
    nothing.
    """
    report = view_report(session.open_store(), thread, session.environ)
    page = render_report(report)
    if output is not None and output != "-":
        write_file(os.path.join(session.cwd, output), page.encode())
    else:
        is_utf8 = stdout_is_utf8()
        write_stdout(page if is_utf8 else page.encode("ascii", "xmlcharrefreplace").decode())
    if report.document["problems"]:
        raise report_of_damage(report.document["thread"], report.document["problems"])


# `uwf thread graph`.


@verb(
    "uwf thread graph 01J7K9M2",
    "uwf thread graph 01J7K9M2 --as svg -o thread.svg",
    exits={1: "there is no such thread, or FILE cannot be written"},
)
@click.argument("thread")
@picture_options
def graph_command(session: Session, thread: str, **how: Any) -> None:
    """Draw the workflow of a thread, and where the thread is in it.

    The picture says how often each role ran, whose turn it is, what failed, and who waits.
    """
    print_picture(session, picture_thread(session.open_store(), thread), **how)
