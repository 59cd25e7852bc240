"""Check a record against the table of events (model/event_rules.py) and the record before it.

Nodes and trees are not read here. Format: FORMAT.md, "The trailers of a thread commit".
"""

from collections.abc import Collection, Iterator

from uwf_git.model.event_folds import Standing
from uwf_git.model.event_rules import CARRIED, RULES, carries, may_follow, may_lead_to
from uwf_git.model.thread import Event
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition_record import TransitionRecord

# The command of a role that a person plays.
_PERSON = "human"


def check_alone(record: TransitionRecord, thread: ThreadId | None) -> Iterator[str]:
    """List what is wrong with a record by itself; it must be of *thread* if that is known."""
    event, rule = record.event, RULES[record.event]
    if thread is not None and record.thread != thread:
        yield f"Uwf-Thread is {record.thread}, and this is the history of {thread}"
    if not may_lead_to(event, record.status):
        yield f"Uwf-Status is {record.status}, and {event} leads to {_or(rule.leads_to.split())}"
    if record.forked_from == record.thread:
        yield "Uwf-Forked-From is the thread itself"
    if record.parent_thread == record.thread:
        yield "Uwf-Parent-Thread is the thread itself"
    for field, trailer in CARRIED.items():
        is_there = getattr(record, field) is not None
        if is_there != carries(event, field):
            article = "an" if trailer == CARRIED["attempt"] else "a"
            yield f"{event} {f'has {article}' if is_there else 'has no'} {trailer}"
    if record.at is not None and not rule.has_place:
        yield f"{event} has an Uwf-At"
    if event == "answer" and record.agent not in {None, _PERSON}:
        yield f"Uwf-Agent is {record.agent!r}, and an answer is that of {_PERSON!r}"


def check_first(record: TransitionRecord) -> Iterator[str]:
    """List what keeps a record from being that of a commit without a parent."""
    if record.event != "start":
        yield f"Uwf-Event is {record.event}, and a history begins with start"
    if record.depth != 0:
        yield f"Uwf-Depth is {record.depth}, and a thread begins with 0"


def check_next(before: TransitionRecord, record: TransitionRecord) -> Iterator[str]:
    """List what keeps *record* from following *before*."""
    event, rule = record.event, RULES[record.event]
    if event == "start":
        yield "Uwf-Event is start, and it has a parent"
    elif not may_follow(event, before.status):
        yield f"Uwf-Event is {event}, after the thread was {before.status}"
    if before.status == "paused" and record.status != "paused" and rule.keeps_pause:
        yield f"Uwf-Status is {record.status} after {event}, and the thread was paused"
    depth = before.depth + rule.steps
    if record.depth != depth:
        yield f"Uwf-Depth is {record.depth}, and must be {depth} after {before.depth}"
    if not rule.may_move_head and record.node != before.node:
        yield f"Uwf-Node is {record.node}, and {event} leaves it at {before.node}"
    # An older uwf leaves the trailer out of the commits that it adds; it never changes one.
    known = {None} if event == "fork" else {None, before.parent_thread}
    if record.parent_thread not in known:
        was = "a fork has none" if event == "fork" else f"was {before.parent_thread or 'absent'}"
        yield f"Uwf-Parent-Thread is {record.parent_thread}, and {was}"
    if not rule.changes_workflow:
        if record.workflow != before.workflow:
            yield f"Uwf-Workflow is {record.workflow}, and {event} leaves it at {before.workflow}"
        if record.workflow_name != before.workflow_name:
            yield f"Uwf-Workflow-Name is {record.workflow_name!r}, and was {before.workflow_name!r}"


def check_parents(event: Event, count: int) -> str | None:
    """Return what is wrong with the number of parents of a commit of this event; None if right."""
    wanted = RULES[event].parents
    if wanted is None:
        return None
    told = "must have one" if wanted else "may have none"
    return None if count == wanted else f"{event} has {count} parents, and {told}"


def check_person(before: Standing, record: TransitionRecord) -> Iterator[str]:
    """List what is wrong with *record* where a person's answer is awaited, or is not."""
    waiting = before.state.waiting
    is_awaited = waiting is not None and waiting.until is None
    event = record.event
    person = RULES[event].person
    if person == "never" and before.record.status == "waiting" and is_awaited:
        yield f"Uwf-Event is {event}, and the thread waited for a person"
    if person == "only" and not is_awaited:
        yield f"Uwf-Event is {event}, and the thread did not wait for a person"
    elif person == "only" and waiting is not None and record.role != waiting.role:
        yield f"Uwf-Role is {record.role!r}, and the thread waited for {waiting.role!r}"
    elif person == "only" and waiting is not None and record.at != waiting.at:
        yield f"Uwf-At is {record.at}, and the thread waited at {waiting.at}"


def check_status(record: TransitionRecord, expected: Collection[str]) -> Iterator[str]:
    """List what is wrong with the status of *record*; its fold leads to one of *expected*."""
    if record.status not in expected:
        yield f"Uwf-Status is {record.status}, and {record.event} leads to {_or(expected)} here"


def _or(statuses: Collection[str]) -> str:
    return " or ".join(sorted(statuses))
