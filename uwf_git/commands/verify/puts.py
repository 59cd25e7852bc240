"""Check the commits of puts: workflows, and nodes put by hand.

What both have in common: a chain of commits, each with its own `nodes/`. One walk back collects the
ids; one pass from the oldest to the newest checks them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.commands.verify.history import find_old_format, walk_back
from uwf_git.commands.verify.rebuild import (
    find_author_problem,
    list_wrong_trailers,
    list_wrong_words,
)
from uwf_git.commands.verify.tree import NODES, AllowedChange, TreeChecks
from uwf_git.errors import StoreDamaged
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.lookup.cas_nodes import NODES_REF, build_put_message
from uwf_git.store.nodes.folders import RAW_TREE_MODE, TreeEntry
from uwf_git.store.objects.commit import CommitView, read_commit
from uwf_git.store.objects.message import BadMessage, parse_trailers
from uwf_git.store.objects.strict_commit import StrictCommit, read_strict_commit
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store

_BY_HAND = "no version of uwf writes such a commit: it was made by hand"
_REWRITTEN = "history is never rewritten: fetch, put it again on the newest version, and push that"


class Put(NamedTuple):
    """One commit, as far as it can be read."""

    site: Location
    trailers: Mapping[str, str]
    files: Mapping[str, bytes]
    others: Mapping[bytes, TreeEntry]
    """The other entries at the top of its tree."""

    view: CommitView
    added: Sequence[NodeHash] = ()
    """The nodes that it has, and the commit before had not; of a workflow all."""


class PutRules(NamedTuple):
    """The rules for the commits of one ref."""

    ref: str
    top: Mapping[str, bytes]
    """The entries at the top of the tree: name to mode."""

    may_lose: bool
    """A node of one commit may be missing from the next."""

    judge: Callable[[Put], Iterator[Finding]]
    """Checks one commit further."""

    make: Callable[[Put], bytes | None]
    """Makes the message again; None if that cannot be, which *judge* tells."""

    events: tuple[str, ...] = ("put",)
    """The allowed events."""

    may_hold_more: bool = False
    """The tree may have other entries at the top, which *judge* checks."""


def check_puts(
    trees: TreeChecks, rules: PutRules, tip: Oid, *, known: Oid | None
) -> Iterator[Finding]:
    """Check the commits of a ref from *tip* back to *known*, exclusive."""
    ref = rules.ref
    old = find_old_format(trees.objects, ref, tip)
    if old is not None:
        yield old
        return
    history = walk_back(trees.objects, tip, set() if known is None else {known})
    if history.damage is not None:
        damage = history.damage
        message = f"the history of {ref} breaks off: {damage.message}"
        oid = damage.facts.get("commit") or damage.facts.get("object")
        yield Finding(message, damage.hint or _BY_HAND, ref, oid)
    elif known is not None and history.behind is None:
        message = f"{tip} does not descend from {known}, where {ref} was"
        yield Finding(message, _REWRITTEN, ref, tip)
    before = None if history.behind is None else _nodes_of(trees, history.behind)
    time_s, is_known = 0, history.damage is None
    for oid in reversed(history.commits):
        # The message names what was added: it is made again only where the one before is known.
        make, is_known = rules.make if is_known else lambda _put: None, False
        site = Location(ref, oid)
        try:
            commit = read_strict_commit(trees.objects, oid)
        except StoreDamaged as error:
            yield site.finding(error.message, hint=error.hint)
            continue
        trees.count(commit)
        yield from _check_commit(site, commit, time_s)
        time_s = commit.view.time_s
        tree = bytes.fromhex(commit.view.tree.decode())
        others: dict[bytes, TreeEntry] = {}
        files, troubles = trees.open_top(
            site, tree, rules.top, others=others if rules.may_hold_more else None
        )
        yield from troubles
        if NODES not in files:
            continue
        site = site._replace(nodes=files[NODES])
        growth = AllowedChange(None if rules.may_lose else before)
        added: list[NodeHash] = []
        yield from trees.check_nodes(site, growth, added)
        before, is_known = files[NODES], True
        yield from _judge(
            rules._replace(make=make), Put(site, {}, files, others, commit.view, added)
        )


def _check_commit(site: Location, commit: StrictCommit, time_s: int) -> Iterator[Finding]:
    view = commit.view
    if commit.problem is not None:
        yield site.finding(f"commit {view.oid} {commit.problem}", hint=_BY_HAND)
    if len(view.parents) > 1:
        yield site.finding(f"the commit has {len(view.parents)} parents, and may have one")
    if view.time_s < time_s:
        yield site.finding(f"its date, {view.time_s}, is before that of its parent, {time_s}")
    problem = find_author_problem(commit)
    if problem is not None:
        yield site.finding(problem, hint=_BY_HAND)


def _judge(rules: PutRules, put: Put) -> Iterator[Finding]:
    site = put.site
    try:
        trailers = parse_trailers(put.view.message)
    except BadMessage as error:
        told = error.of_commit(site.commit)
        yield site.finding(told.message, hint=told.hint)
        return
    event = trailers.get("Uwf-Event")
    put = put._replace(trailers=trailers)
    yield from rules.judge(put)
    if event not in rules.events:
        yield site.finding(f"Uwf-Event is {event}, and must be {' or '.join(rules.events)}")
        return
    message, right = put.view.message, rules.make(put)
    if right is None or message == right:
        return
    wrong = [*list_wrong_trailers(message, right), *list_wrong_words(message, right)]
    for each in wrong or ["its message is not written as uwf writes it"]:
        yield site.finding(each, hint=_BY_HAND)


def _nodes_of(trees: TreeChecks, oid: Oid) -> bytes | None:
    try:
        tree = read_commit(trees.objects, oid).tree
        entry = trees.folders.get(bytes.fromhex(tree.decode())).get(NODES.encode())
    except StoreDamaged:
        return None
    return None if entry is None else entry[1]


_RULES = PutRules(
    NODES_REF,
    {NODES: RAW_TREE_MODE},
    may_lose=False,
    judge=lambda _put: iter(()),
    make=lambda put: build_put_message(put.added),
)


def check_put_nodes(store: Store, tip: Oid, *, known: Oid | None = None) -> Iterator[Finding]:
    """Check the commits of refs/cas/nodes from *tip* back to *known*, which is trusted.

    Without *known* all commits are checked.
    """
    trees = TreeChecks(store)
    yield from check_put_nodes_in(trees, tip, known=known)
    yield from trees.nodes.finish()


def check_put_nodes_in(
    trees: TreeChecks, tip: Oid, *, known: Oid | None = None
) -> Iterator[Finding]:
    """Check the same within a larger run; some findings come only when *trees* finishes."""
    yield from check_puts(trees, _RULES, tip, known=known)
