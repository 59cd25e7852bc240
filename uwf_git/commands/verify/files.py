"""Check the files of a store as `git fsck` does: HEAD, refs, packed-refs, objects."""

import os
import shlex
from collections.abc import Container, Iterator

from uwf_git.commands.verify.finding import Finding
from uwf_git.errors import GIVEN_BACK
from uwf_git.store.config_watch import accept_config
from uwf_git.store.git.hook_files import find_unpinned
from uwf_git.store.objects.objects import disk_places, has_object
from uwf_git.store.objects.strict_files import check_object_files
from uwf_git.store.refs.strict_refs import (
    BadRefFile,
    check_head,
    check_loose_refs,
    check_packed_refs,
)
from uwf_git.store.store import Store


def check_files(store: Store, checked: Container[str]) -> Iterator[Finding]:
    """Check what no ref leads to; of the refs in *checked* only their places in packed-refs."""
    for bad in (*check_head(store.path), *check_packed_refs(store.path)):
        yield Finding(f"{bad.name} {bad.problem}", bad.hint)
    for name, value in check_loose_refs(store.path):
        if name in checked:
            continue
        if isinstance(value, BadRefFile):
            yield Finding(f"ref {name} {value.problem}", value.hint, name)
        elif not has_object(store.objects, value):
            yield Finding(f"ref {name} points at {value}, which is missing", GIVEN_BACK, name)
    for place in disk_places(store.objects):
        for file in check_object_files(os.fspath(place.path)):
            yield Finding(f"objects/{file.name} {file.problem}", file.hint)


def find_hub_gap(git_dir: str) -> Finding | None:
    """Return how pushes may escape the rules of the shared store, if it has hooks, or None."""
    problem = find_unpinned(git_dir)
    if problem is None:
        return None
    path = shlex.quote(os.path.abspath(git_dir))
    return Finding(
        f"some pushes to the shared store {git_dir} may not be checked: {problem}",
        f"its owner mends it: `uwf init --shared {path}`",
    )


def note_changed_settings(store: Store) -> tuple[Finding, ...]:
    """Return a note on each setting that changed since an agent was started; it is known then."""
    see = f"see what it is: `git -C {shlex.quote(store.path)} config --get-all"
    return tuple(
        Finding(
            f"the store's setting {name} was changed since an agent was started, not by uwf",
            f"{see} {shlex.quote(name)}`; it is known from now on",
        )
        for name in accept_config(store)
    )
