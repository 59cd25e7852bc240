"""`uwf` on any store, in this process."""

import io
import os
from contextlib import redirect_stderr, redirect_stdout
from itertools import count

from cli.ran import Ran
from seal import START_MS

from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.session import Session
from uwf_git.cli.uwf import UWF
from uwf_git.model.names import ThreadId


def uwf(store: str, *words: str) -> Ran:
    """Run it on the store at a path."""
    clock = count(START_MS, 1000).__next__
    session = Session(
        os.getcwd(), dict(os.environ), clock, lambda: ThreadId("7" + "Z" * 25), repo=store
    )
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = run(UWF, words, prog="uwf", environ=session.environ, session=session)
    return Ran(status, out.getvalue(), err.getvalue())
