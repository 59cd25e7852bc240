"""Checking a tree: does a commit hold the files that it must, and no others.

Owns: the top of the tree, and what may happen to `nodes/` from one commit to the next.
Knows nothing of: what the commit says, what a node must be.
Always true: of two trees only the folders that differ are read.
Format: FORMAT.md, "The tree of a thread commit", "The tree of a workflow commit".
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from uwf_git.commands.check_nodes import NodeChecks
from uwf_git.commands.check_run import Site
from uwf_git.commands.trouble import Trouble
from uwf_git.errors import StoreDamaged
from uwf_git.store.node_files import Entry, NodeFolders
from uwf_git.store.store import Store

NODES = "nodes"

_LOST = (
    "nothing that a thread has may go away: `git show {commit}` names what did; the commit before "
    "it is whole"
)


class Growth(NamedTuple):
    """How far a folder of nodes may differ from the one before."""

    before: bytes | None
    """The 20 bytes of the id of the `nodes/` before; None if there is none."""

    may_lose: bool = False
    """Whether nodes may go away, as from one version of a workflow to the next."""

    may_merge: bool = False
    """Whether another blob of the same node may take a node's place, as where branches meet."""

    keep_before: bool = False
    """Whether the folders before are those of many threads, and are remembered."""


class TreeChecks:
    """The trees that are looked at in one run."""

    def __init__(self, store: Store) -> None:
        self.objects = store.objects
        self.folders = NodeFolders(store.objects)
        self.nodes = NodeChecks(store.objects, self.folders)
        self.commits = 0
        """How many commits were looked at."""

    def open_top(
        self,
        site: Site,
        tree: bytes,
        wanted: Mapping[str, bytes],
        *,
        others: dict[bytes, Entry] | None = None,
    ) -> tuple[dict[str, bytes], list[Trouble]]:
        """Give what is at the top of a tree, of *wanted* (name to mode), and what is wrong.

        What is not wanted is put into *others*, for the caller to judge; without it, it is wrong.
        """
        troubles: list[Trouble] = []
        try:
            top = self.folders.get(tree)
        except StoreDamaged as error:
            return {}, [site.trouble(error.message, hint=error.hint)]
        self.folders.forget(tree)
        if others is not None:
            own = {name.encode() for name in wanted}
            others |= {key: entry for key, entry in top.items() if key not in own}
            top = {key: entry for key, entry in top.items() if key in own}
        entries = {key.decode(errors="backslashreplace"): entry for key, entry in top.items()}
        found: dict[str, bytes] = {}
        for name, (mode, raw) in entries.items():
            if name not in wanted:
                troubles.append(site.trouble(f"the commit has {name}, which does not belong there"))
            elif mode != wanted[name]:
                problem = f"{name} has mode {mode.decode()}, and must have {wanted[name].decode()}"
                troubles.append(site.trouble(problem))
            else:
                found[name] = raw
        missing = [name for name in wanted if name not in entries]
        troubles += [site.trouble(f"the commit has no {name}") for name in missing]
        return found, troubles

    def check_nodes(self, site: Site, growth: Growth) -> Iterator[Trouble]:
        """Give what is wrong with the nodes that are new, or not there any more."""
        before = growth.before
        if before == site.nodes:
            return
        for change in self.folders.compare(before, site.nodes, keep_old=growth.keep_before):
            if change.kind in {"odd", "damaged"}:
                message = (
                    f"{change.path} {change.problem}" if change.kind == "odd" else change.problem
                )
                yield site.trouble(message, hint=change.hint or None, node=change.name)
            elif change.kind == "lost" and not growth.may_lose:
                yield site.trouble(
                    f"node {change.name} was there before, and is not any more",
                    hint=_LOST.format(commit=site.commit),
                    node=change.name,
                )
            elif change.kind == "replaced" and not growth.may_merge:
                yield site.trouble(
                    f"node {change.name} was replaced: a node keeps the file it had first",
                    hint=_LOST.format(commit=site.commit),
                    node=change.name,
                )
            yield from self.nodes.check(site, change)
