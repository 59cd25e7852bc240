"""The options of the verbs that draw, and what becomes of a picture."""

import os
import stat
from collections.abc import Callable
from typing import Any

import click

from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import stdout_is_utf8, write_stdout
from uwf_git.engine.picture.draw import DEFAULT_WIDTH, FORMS, draw
from uwf_git.engine.picture.plan import Subject
from uwf_git.errors import Refused
from uwf_git.store.disk.durable import replace_file


def picture_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--as`, `-o` and `--whole` to a verb, the keywords of ``print_picture``."""
    form = click.option(
        "--as",
        "form",
        type=click.Choice(FORMS),
        default="text",
        show_default=True,
        help="Which picture: an outline, a drawing, or the source for another program.",
    )
    output = click.option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write it to FILE, whole or not at all, instead of printing it.",
    )
    whole = click.option(
        "--whole", is_flag=True, help="Every branch, also where more than twelve are alike."
    )
    return form(output(whole(function)))


def print_picture(
    session: Session, subject: Subject, *, form: str, output: str | None, whole: bool
) -> None:
    """Print the picture of *subject*, or write it to the file *output*; `-` is standard output."""
    if output is not None and output != "-":
        picture = draw(subject, form, is_whole=whole)
        write_file(os.path.join(session.cwd, output), picture.encode())
        return
    width = session.text_width() or DEFAULT_WIDTH
    picture = draw(subject, form, width=width, is_whole=whole)
    if form == "svg" and not stdout_is_utf8():
        picture = picture.encode("ascii", "xmlcharrefreplace").decode()
    write_stdout(picture)


def write_file(path: str, content: bytes) -> None:
    """Write *content* to *path*, whole or not at all."""
    try:
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            # A pipe or a device cannot be replaced, and a folder is an error.
            with open(path, "wb") as file:
                file.write(content)
            return
        # A link stays a link; a missing folder is not made.
        real = os.path.realpath(path)
        os.stat(os.path.dirname(real))
        replace_file(real, content)
    except OSError as error:
        raise Refused(
            f"{path} cannot be written: {error.strerror or error}",
            code="output-unwritten",
            hint="name a file in a folder that exists, or leave -o out",
            path=path,
        ) from error
