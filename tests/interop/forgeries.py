"""All forgeries: what each does to a thread that splits and joins, and to which workflows.

A row is tried on all its workflows at night; plain pytest tries some on the first of them. What
expressions say is recorded in StartNodes alone, so other items of a map, or another prompt of a
workflow, are another history that may be: only a signature tells.
"""

from pathlib import Path

from interop.forged_branches import BRANCHES
from interop.forged_joins import JOINS
from interop.forger import Forger
from interop.honest_flows import Told, refs_of

ROWS = {**JOINS, **BRANCHES}


def forge(name: str, told: Told, place: Path) -> str:
    """Forge a copy of a store at *place*, and return its path."""
    forger = Forger(told.copy(place))
    store = forger.told.world.store
    before = refs_of(store)
    changes = ROWS[name][1](forger)
    if changes:
        forger.rewrite(changes)
    assert refs_of(store) != before, "nothing was forged"
    return store.path
