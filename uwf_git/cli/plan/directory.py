"""The work directory of `uwf plan`, and the store that knows its thread."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from uwf_git.cli.session.settings import Session
from uwf_git.errors import BadUsage

if TYPE_CHECKING:
    from uwf_git.plan.settings import PlanSettings
    from uwf_git.store.store import Store


def not_a_directory(path: str) -> BadUsage:
    """Tell that `-d` names no directory."""
    return BadUsage(
        f"{path} is not a directory",
        code="no-such-directory",
        hint="name that of the project with -d",
        path=path,
    )


def directory_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``directory`` to a verb."""
    return click.option(
        "-d", "--dir", "directory", metavar="DIR", help="The work directory.  [default: this one]"
    )(function)


def find_directory(session: Session, directory: str | None) -> str:
    """Return the work directory, absolute.

    Raises:
        Refused: it is not there.
    """
    path = os.path.normpath(os.path.join(session.cwd, directory or ""))
    if not os.path.isdir(path):
        raise not_a_directory(directory or path)
    return path


def find_store_of(session: Session, workdir: str) -> "Store | None":
    """Open the store that a command in *workdir* would use; None if there is none yet.

    Raises:
        NotAStore: the one that was named is not there.
    """
    from uwf_git.store.store import NotAStore  # noqa: PLC0415 (60 ms that help does not need)

    try:
        return session._replace(cwd=workdir).open_store()
    except NotAStore:
        if session.repo:
            raise
        return None


def read_settings_of(session: Session, store: "Store | None", workdir: str) -> "PlanSettings":
    """Return the settings that count in *workdir*; without a store those of the user.

    Raises:
        Refused: one has a wrong value.
        Refused: the store's own config sets one that needs trust.
    """
    from uwf_git.plan.settings import (  # noqa: PLC0415 (as above)
        load_plan_settings,
        read_plan_settings,
    )
    from uwf_git.store.git.scopes import read_user_config  # noqa: PLC0415 (as above)

    if store is None:
        return read_plan_settings(read_user_config(session.environ))
    return load_plan_settings(store, workdir)
