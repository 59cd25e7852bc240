"""Checking puts: the commits of workflows and of nodes put by hand.

Owns: what both have in common: a chain of commits, each with its own `nodes/`.
Knows nothing of: what the one or the other must say; each says that itself.
Always true: as of threads: one walk back for the ids, one pass from the oldest to the newest.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from uwf_git.commands.check_history import walk_back
from uwf_git.commands.check_run import Site
from uwf_git.commands.check_tree import NODES, Growth, TreeChecks
from uwf_git.commands.trouble import Trouble
from uwf_git.errors import StoreDamaged
from uwf_git.store.commit import CommitView, read_commit
from uwf_git.store.message import BadMessage, parse_trailers
from uwf_git.store.node_files import Entry
from uwf_git.store.refs import Oid
from uwf_git.store.strict_commit import StrictCommit, read_strict_commit

_BY_HAND = "no version of uwf writes such a commit: somebody made it by hand"
_REWRITTEN = "history is never rewritten: fetch, put it again on the newest version, and push that"


class Put(NamedTuple):
    """One commit, as far as it can be read."""

    site: Site
    trailers: Mapping[str, str]
    files: Mapping[str, bytes]
    others: Mapping[bytes, Entry]
    """What is at the top of its tree beside what must be there."""

    view: CommitView


class PutRules(NamedTuple):
    """What the commits of one ref must be."""

    ref: str
    top: Mapping[str, bytes]
    """What the top of the tree has: name to mode."""

    may_lose: bool
    """Whether a node of one commit may be missing from the next."""

    judge: Callable[[Put], Iterator[Trouble]]
    """Gives what is wrong with one commit beyond that."""

    events: tuple[str, ...] = ("put",)
    """What may have happened."""

    may_hold_more: bool = False
    """Whether its tree may have other things at the top, which *judge* looks at."""


def check_puts(
    trees: TreeChecks, rules: PutRules, tip: Oid, *, known: Oid | None
) -> Iterator[Trouble]:
    """Give what is wrong in the commits of a ref from *tip* back to *known*, exclusive."""
    history = walk_back(trees.objects, tip, set() if known is None else {known})
    ref = rules.ref
    if history.damage is not None:
        damage = history.damage
        message = f"the history of {ref} breaks off: {damage.message}"
        oid = damage.facts.get("commit") or damage.facts.get("object")
        yield Trouble(message, damage.hint or _BY_HAND, ref, oid)
    elif known is not None and history.behind is None:
        message = f"{tip} does not descend from {known}, where {ref} was"
        yield Trouble(message, _REWRITTEN, ref, tip)
    before = None if history.behind is None else _nodes_of(trees, history.behind)
    time_s = 0
    for oid in reversed(history.commits):
        site = Site(ref, oid)
        trees.commits += 1
        try:
            commit = read_strict_commit(trees.objects, oid)
        except StoreDamaged as error:
            yield site.trouble(error.message, hint=error.hint)
            continue
        yield from _check_commit(site, commit, time_s)
        time_s = commit.view.time_s
        tree = bytes.fromhex(commit.view.tree.decode())
        others: dict[bytes, Entry] = {}
        files, troubles = trees.open_top(
            site, tree, rules.top, others=others if rules.may_hold_more else None
        )
        yield from troubles
        if NODES not in files:
            continue
        site = site._replace(nodes=files[NODES])
        growth = Growth(None if rules.may_lose else before)
        yield from trees.check_nodes(site, growth)
        before = files[NODES]
        yield from _judge(rules, Put(site, {}, files, others, commit.view))


def _check_commit(site: Site, commit: StrictCommit, time_s: int) -> Iterator[Trouble]:
    view = commit.view
    if commit.problem is not None:
        yield site.trouble(f"commit {view.oid} {commit.problem}", hint=_BY_HAND)
    if len(view.parents) > 1:
        yield site.trouble(f"the commit has {len(view.parents)} parents, and may have one")
    if view.time_s < time_s:
        yield site.trouble(f"its date, {view.time_s}, is before that of its parent, {time_s}")


def _judge(rules: PutRules, put: Put) -> Iterator[Trouble]:
    site = put.site
    try:
        trailers = parse_trailers(put.view.message)
    except BadMessage as error:
        told = error.of_commit(site.commit)
        yield site.trouble(told.message, hint=told.hint)
        return
    event = trailers.get("Uwf-Event")
    if event not in rules.events:
        yield site.trouble(f"Uwf-Event is {event}, and must be {' or '.join(rules.events)}")
    if "Uwf-Format" not in trailers:
        yield site.trouble("the commit has no Uwf-Format")
    yield from rules.judge(put._replace(trailers=trailers))


def _nodes_of(trees: TreeChecks, oid: Oid) -> bytes | None:
    try:
        tree = read_commit(trees.objects, oid).tree
        entry = trees.folders.get(bytes.fromhex(tree.decode())).get(NODES.encode())
    except StoreDamaged:
        return None
    return None if entry is None else entry[1]
