"""What goes over a connection to a remote, in plain values; imports no network code."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from dulwich.objects import ObjectID

from uwf_git.store.oid import Oid


class FetchRequest(NamedTuple):
    wants: list[Oid]
    haves: list[Oid]
    """Commits that are here with their history, the likeliest to be known to the remote first."""


class Parcel(NamedTuple):
    changes: Mapping[str, Oid | None]
    """The new value of each ref; None deletes it."""

    objects: list[ObjectID]


class PushReport(NamedTuple):
    statuses: dict[str, str | None]
    """By ref: None if it was changed, else the remote's reason."""

    output: str

    is_atomic: bool = True
    """False if an atomic push was requested and the remote does not support it; nothing changed."""


ChooseWants: TypeAlias = Callable[[dict[str, Oid]], FetchRequest]
"""Decides by the remote's refs what to fetch."""

PackParcel: TypeAlias = Callable[[dict[str, Oid]], Parcel]
"""Decides by the remote's refs what to push. git's protocol lists them in the same connection."""
