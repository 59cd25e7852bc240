"""Check a tree: does a commit hold exactly the files that it must.

Of two trees only the folders that differ are read.
Format: FORMAT.md, "The tree of a thread commit", "The tree of a workflow commit".
"""

from collections.abc import Iterator, Mapping, Sequence

from uwf_git.commands.split.commits import Remaking
from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.commands.verify.nodes import NodeChecks
from uwf_git.engine.append_check import Rules
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.flow import Position
from uwf_git.model.names import NodeHash
from uwf_git.store.nodes.folders import NodeFolders, TreeEntry
from uwf_git.store.objects.recent import RecentObjects
from uwf_git.store.objects.strict_commit import StrictCommit
from uwf_git.store.store import Store

NODES = "nodes"

_GONE = {
    "lost": "was in the commit before and is missing",
    "replaced": "was replaced: a node keeps the file it had first",
}
_LOST = (
    "a thread never loses a node: `git show {commit}` names the lost one; the commit before it is "
    "whole"
)


class TreeChecks:
    def __init__(self, store: Store) -> None:
        self.objects = store.objects
        self.recent = RecentObjects(store.objects)
        """For what many commits refer to."""
        self.folders = NodeFolders(self.recent)
        self.nodes = NodeChecks(self.recent, self.folders)
        self.rules: dict[NodeHash, Rules] = {}
        self.entries: dict[bytes, Position | None] = {}
        """Of each StartNode, by its blob: where its thread begins in a flow."""
        self.remaking = Remaking()
        """What derived commits are compared with."""
        self.commits = 0
        self.unsigned = 0
        """How many of them have no signature, though somebody made them."""

    def count(self, commit: StrictCommit, *, is_derived: bool = False) -> None:
        self.commits += 1
        self.unsigned += not (commit.is_signed or is_derived)

    def open_top(
        self,
        site: Location,
        tree: bytes,
        wanted: Mapping[str, bytes],
        *,
        others: dict[bytes, TreeEntry] | None = None,
    ) -> tuple[dict[str, bytes], list[Finding]]:
        """Return the *wanted* entries (name to mode) and findings; others go into *others*."""
        troubles: list[Finding] = []
        try:
            top = self.folders.get(tree)
        except StoreDamaged as error:
            return {}, [site.finding(error.message, hint=error.hint)]
        self.folders.forget(tree)
        if others is not None:
            own = {name.encode() for name in wanted}
            others |= {key: entry for key, entry in top.items() if key not in own}
            top = {key: entry for key, entry in top.items() if key in own}
        entries = {key.decode(errors="backslashreplace"): entry for key, entry in top.items()}
        found: dict[str, bytes] = {}
        for name, (mode, raw) in entries.items():
            if name not in wanted:
                troubles.append(site.finding(f"the commit has {name}, which does not belong there"))
            elif mode != wanted[name]:
                problem = f"{name} has mode {mode.decode()}, and must have {wanted[name].decode()}"
                troubles.append(site.finding(problem))
            else:
                found[name] = raw
        missing = [name for name in wanted if name not in entries]
        troubles += [site.finding(f"the commit has no {name}") for name in missing]
        return found, troubles

    def check_needed(
        self, site: Location, cause: NodeHash | None, added: Sequence[NodeHash]
    ) -> Iterator[Finding]:
        left, seen = set(added), set[NodeHash]()
        waiting = [] if cause is None else [cause]
        left.difference_update(waiting)
        try:
            while waiting and left:
                targets = self.nodes.list_targets(site, waiting.pop())
                seen.update(targets)
                found = left.intersection(targets)
                left -= found
                waiting += found
            if left and any(self.nodes.find(site, each) is None for each in seen - BUILTIN.keys()):
                return  # told as the node was checked: what is missing may refer to others
        except StoreDamaged:
            return  # told as the node was checked
        for name in sorted(left):
            message = f"node {name} was added, and nothing that the event adds refers to it"
            yield site.finding(message, node=name)

    def check_nodes(
        self,
        site: Location,
        before: bytes | None,
        added: list[NodeHash] | None = None,
        *,
        keep_before: bool = False,
    ) -> Iterator[Finding]:
        """Check that nothing since *before* was lost or replaced; new names go into *added*.

        With *keep_before*, many threads share the folders before: they are cached.
        """
        if before == site.nodes:
            return
        for change in self.folders.compare(before, site.nodes, keep_old=keep_before):
            if change.kind in {"odd", "damaged"}:
                where = f"{change.path} " if change.kind == "odd" else ""
                message = where + change.problem
                yield site.finding(message, hint=change.hint or None, node=change.name)
            elif change.kind in _GONE:
                message = f"node {change.name} {_GONE[change.kind]}"
                hint = _LOST.format(commit=site.commit)
                yield site.finding(message, hint=hint, node=change.name)
            elif change.kind == "added" and added is not None and change.name is not None:
                added.append(change.name)
            yield from self.nodes.check(site, change)
