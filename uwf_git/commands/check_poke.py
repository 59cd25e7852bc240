"""Checking a poke: does the thread stand where it stood before the step that is taken again.

Owns: finding that place in the history. Knows nothing of: what else a commit must be.
Always true: only the commits back to that step are read, mostly one.
"""

from collections.abc import Generator

from uwf_git.commands.check_present import BadPresent, read_now
from uwf_git.commands.check_run import Site
from uwf_git.commands.trouble import Trouble
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread import STEPS, Present
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.commit import read_commit, read_file
from uwf_git.store.message import BadMessage
from uwf_git.store.objects import ObjectStore
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import NOW_FILE
from uwf_git.store.thread_message import parse_thread_message


def find_poked(
    objects: ObjectStore, site: Site, record: TransitionRecord, before: Oid
) -> Generator[Trouble, None, Present | None]:
    """Give what is wrong with the head that a poke goes back to; *before* is the commit before.

    Returns:
        The present before the step that was the head at *before*; None if it cannot be read.
    """
    try:
        at = _before_step(objects, before)
        if at is None:
            yield site.trouble("poke comes after no step")
            return None
        head = parse_thread_message(read_commit(objects, at).message).node
        present = read_now(read_file(objects, read_commit(objects, at), NOW_FILE)).present
    except (StoreDamaged, BadMessage, BadPresent):
        return None  # told of that commit
    if record.node != head:
        message = f"Uwf-Node is {record.node}, and {head} was before the step that is taken back"
        yield site.trouble(message)
    return present


def _before_step(objects: ObjectStore, oid: Oid) -> Oid | None:
    """Give the commit before the one by which the head of *oid* became the head."""
    view = read_commit(objects, oid)
    node = parse_thread_message(view.message).node
    while view.parents:
        record = parse_thread_message(view.message)
        if record.event in STEPS and record.node == node:
            return view.parents[0]
        view = read_commit(objects, view.parents[0])
    return None
