"""Divergence: refs that neither go on from what a remote last had, nor lead to it."""

from collections.abc import Iterator
from typing import NamedTuple

from uwf_git.store.objects.walk import has_object, is_descendant
from uwf_git.store.oid import Oid
from uwf_git.store.refs.refs import list_refs
from uwf_git.store.remotes.remotes import list_remotes
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.workflows.registry import WORKFLOWS


class Divergence(NamedTuple):
    """A remote whose history of a thread or workflow differs from the one here."""

    remote: str
    there: Oid


class RemoteHeads:
    def __init__(self, store: Store) -> None:
        self._objects = store.objects
        self._heads = {
            remote.name: {
                prefix: list_refs(store.path, remote.tracking + prefix.removeprefix("refs/"))
                for prefix in (ARCHIVE, ACTIVE, WORKFLOWS)
            }
            for remote in list_remotes(store.config)
        }

    def find_thread(self, thread: str, here: Oid) -> Iterator[Divergence]:
        return self._find((ARCHIVE, ACTIVE), thread, here)

    def find_workflow(self, name: str, here: Oid) -> Iterator[Divergence]:
        return self._find((WORKFLOWS,), name, here)

    def _find(self, prefixes: tuple[str, ...], name: str, here: Oid) -> Iterator[Divergence]:
        for remote, heads in self._heads.items():
            seen = (heads[prefix].get(name) for prefix in prefixes)
            there = next((oid for oid in seen if oid is not None), None)
            if there is not None and self._differ(here, there):
                yield Divergence(remote, there)

    def _differ(self, here: Oid, there: Oid) -> bool:
        if is_descendant(self._objects, here, there) or is_descendant(self._objects, there, here):
            return False
        # A lost commit of the remote is for `git fsck`.
        return all(has_object(self._objects, oid) for oid in (here, there))
