"""`uwf workflow judge`: the agent that plays the validator of the workflow `draft`, never typed."""

import json

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import write_stdout
from uwf_git.commands.draft.draft import answer_as_validator


@verb("uwf workflow judge 01J7K9M2XNPQR5VWBCDF8G3H4T", exits={1: "the thread has no draft"})
@click.argument("thread")
def command(session: Session, thread: str) -> None:
    """Judge the newest draft of a thread, and answer as an agent does."""
    meta, content = answer_as_validator(session.open_store(), session.cwd, thread)
    # An agent's answer is JSON, whatever format is configured.
    write_stdout(json.dumps({"meta": meta, "content": content}) + "\n")
