"""The verbs of demo.py."""

import errno
import os
import signal
import threading
from typing import Any, NoReturn

import click

from uwf_git.cli.app.parameters import (
    INPUT,
    PROMPT_OPTIONS,
    Input,
    read_json_argument,
    read_prompt,
    with_options,
)
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.session import Session
from uwf_git.errors import AgentFailed, Conflict, Refused, StoreDamaged

NO_COMMAND = "a string"


@verb("demo say hello", exits={1: "nobody listens", 4: "somebody else is talking"})
@click.argument("thing")
@click.option("--times", type=int, default=1, help="How often.")
def say(session: Session, thing: str, times: int) -> None:
    """Say a thing.

    Nothing more.
    """
    note(f"saying {thing}")
    emit(session, {"said": thing * times})


@verb("demo show '[1]'")
@click.argument("document")
@click.option("--own", is_flag=True, help="In our own words.")
def show(session: Session, document: str, *, own: bool) -> None:
    """Show a JSON document."""
    value = read_json_argument(document, "the document")
    emit(session, value, text=(lambda each: f"own words: {each}") if own else None)


@verb("demo deep settings")
def settings(session: Session) -> None:
    """Tell what the session holds."""
    emit(
        session,
        {
            "repo": session.repo,
            "format": session.output_format,
            "agent": session.agent,
            "now": [session.now_ms(), session.now_ms()],
            "threads": [session.new_thread_id(), session.new_thread_id()],
        },
    )


def _read_prompt(given: dict[str, Any]) -> None:
    given["prompt"] = read_prompt(given.pop("prompt_text"), given.pop("prompt_file"))


@verb("demo ask -p 'how are you?'")
@with_options(_read_prompt, *PROMPT_OPTIONS)
def ask(session: Session, prompt: str) -> None:
    """Take a prompt."""
    emit(session, {"prompt": prompt})


@verb("demo read notes.txt")
@click.argument("file", type=INPUT)
def read(session: Session, file: Input) -> None:
    """Read a file."""
    emit(session, {"name": file.name, "text": file.read_bytes(limit_bytes=100).decode()})


@verb("demo wait")
@click.option("--at-the-end", is_flag=True, help="For what is let go of.")
def wait(session: Session, *, at_the_end: bool) -> None:
    """Wait for ever."""
    emit(session, "waiting")
    # A test's process may have inherited that interrupts are ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    note("ready")
    if at_the_end and session.held is not None:
        session.held.callback(threading.Event().wait)
    else:
        threading.Event().wait()


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even that")


_ERRORS: dict[str, BaseException] = {
    "refused": Refused("thread 01J is archived", hint="start a new one", thread="01J"),
    "agent": AgentFailed("it broke"),
    "conflict": Conflict("it moved"),
    "damaged": StoreDamaged("it rots"),
    "usage": click.UsageError("Words are wrong."),
    "click": click.ClickException("It is closed."),
    "abort": click.Abort(),
    "exit": click.exceptions.Exit(5),
    "interrupt": KeyboardInterrupt(),
    "full": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/a/file"),
    "other-pipe": BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)),
    "memory": MemoryError(),
    "bug": ZeroDivisionError("by zero\nat all"),
    "unprintable": Unprintable(),
}


@verb("demo fail refused")
@click.argument("kind", type=click.Choice(list(_ERRORS)))
def fail(session: Session, kind: str) -> NoReturn:
    """Raise an error."""
    emit(session, None)
    raise _ERRORS[kind]
