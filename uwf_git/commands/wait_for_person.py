"""Waiting for a person: a role whose agent is `human` takes no process.

Owns: the commit that says whose answer a thread waits for. Knows nothing of: how it is given
(thread_answer.py). Source: seed 002's waiting_human; DESIGN 4, the move Wait.
"""

from uwf_git.commands.caller import Caller
from uwf_git.commands.stepped import Stepped, tell_stepped
from uwf_git.model.node import Node
from uwf_git.model.workflow import parse_role, parse_workflow
from uwf_git.store.heads import Head, advance_head
from uwf_git.store.record import Transition, record_next
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store

_LONGEST_TOLD = 2_000
"""How much of the question stands in the log; the Role node has all of it."""


def wait_for_person(
    store: Store, caller: Caller, seen: tuple[Head, Snapshot], *, role: str, agent: Node
) -> Stepped:
    """Record that the thread waits for a person to play *role*.

    Raises:
        HeadMoved: somebody moved it in the meantime.
    """
    head, snapshot = seen
    workflow = parse_workflow(snapshot.get_node(snapshot.record.workflow))
    asked = parse_role(snapshot.get_node(workflow.roles[role]))
    transition = Transition(
        record=snapshot.record._replace(
            event="wait",
            status="waiting",
            role=role,
            agent=None,
            attempt=None,
            forked_from=None,
            signal=None,
        ),
        said="waits for a person",
        present=snapshot.get_present().after_wait(role),
        nodes=(agent,),
        body=(asked.system_prompt or asked.description)[:_LONGEST_TOLD],
    )
    commit = record_next(store, snapshot, transition, caller.signing(store))
    advance_head(store, head, commit)
    return tell_stepped(transition.record, said=transition.said)
