"""Checking refs/cas/nodes: is every node that was put by hand what its name says.

Owns: what a commit of that ref must be. Knows nothing of: threads and workflows.
Always true: nothing is written, and nothing is raised for what is found: damage is a trouble.
Format: FORMAT.md, "The tree of a workflow commit".
"""

from collections.abc import Iterator

from uwf_git.commands.check_put import PutRules, check_puts
from uwf_git.commands.check_tree import NODES, TreeChecks
from uwf_git.commands.trouble import Trouble
from uwf_git.store.loose_nodes import NODES_REF
from uwf_git.store.node_files import FOLDER
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store

_RULES = PutRules(NODES_REF, {NODES: FOLDER}, may_lose=False, judge=lambda _put: iter(()))


def check_put_nodes(store: Store, tip: Oid, *, known: Oid | None = None) -> Iterator[Trouble]:
    """Give what is wrong in the commits of refs/cas/nodes from *tip* back to *known*, exclusive.

    Without *known* back to the first one; nothing if all is well. *known* is believed.
    """
    trees = TreeChecks(store)
    yield from check_put_nodes_in(trees, tip, known=known)
    yield from trees.nodes.finish()


def check_put_nodes_in(
    trees: TreeChecks, tip: Oid, *, known: Oid | None = None
) -> Iterator[Trouble]:
    """Do the same as one of several checks in a run; some of it is told when *trees* finish."""
    yield from check_puts(trees, _RULES, tip, known=known)
