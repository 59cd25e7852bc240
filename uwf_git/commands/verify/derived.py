"""Check derived commits: make each again, and compare its id. Format: FORMAT.md, "Branches"."""

from collections.abc import Iterator

from uwf_git.commands.split.ending import read_at
from uwf_git.commands.split.plan import SplitRefused, find_container, read_entry
from uwf_git.commands.split.remake import Remaking
from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.commands.verify.flow import find_way_problem
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.position import NotAPosition, parse_position
from uwf_git.store.threads.definitions import get_graph
from uwf_git.store.threads.snapshot import Snapshot

_FORGED = (
    "no version of uwf makes such a commit: it was made by hand; another copy of this store may "
    "have the original history: `git fetch`"
)


def _check_way(site: Location, made: Snapshot) -> Iterator[Finding]:
    """Check that the thread may come to the place at which it splits."""
    try:
        problem = _find_way_problem(read_at(made.objects, made.commit.parents[0]), made.record.at)
    except (Refused, StoreDamaged, NotAPosition, IndexError):
        return  # reported below
    if problem is not None:
        yield site.finding(f"Uwf-At is {made.record.at}, {problem}", hint=_FORGED)


def _find_way_problem(before: Snapshot, at: str | None) -> str | None:
    container, present = find_container(before, at or ""), before.get_present()
    if container.flow is not None:
        entry, position = read_entry(before), parse_position(container.at)
        return find_way_problem(container.flow, entry, present, position)
    ways = get_graph(before, container.workflow.get_moderator()).get(present.role, ())
    if any(way.to == container.at for way in ways):
        return None
    return f"where no transition leads from {present.role}"


def check_derived(site: Location, made: Snapshot, remaking: Remaking) -> Iterator[Finding]:
    """Check that the commit at *made* is what follows from the commits before it."""
    event = made.record.event
    if event == "split":
        yield from _check_way(site, made)
    try:
        expected = remaking.remake(made)
    except SplitRefused as error:
        yield site.finding(f"there can be no such {event}: {error.message}", hint=_FORGED)
        return
    except (Refused, StoreDamaged) as error:
        yield site.finding(f"the {event} does not follow: {error.message}", hint=_FORGED)
        return
    except NotAPosition:
        yield site.finding(f"the {event} follows a thread that begins at no place", hint=_FORGED)
        return
    if expected != made.commit.oid:
        yield site.finding(
            f"the {event} is not the one that follows, which is {expected}", hint=_FORGED
        )
