"""Checking a turn: do the trailers of a step or a failed try agree with its node.

Owns: role, agent, attempt number and the chain; what a role hands in against its schema.
Knows nothing of: presents, trees, what came before but for the head.
Always true: the workflow's own nodes are believed here; where they came in they were looked at.
"""

from collections.abc import Generator, Iterator

from uwf_git.commands.agent_name import agent_name
from uwf_git.commands.check_nodes import NodeChecks
from uwf_git.commands.check_run import Site
from uwf_git.commands.trouble import Trouble
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import AGENT_CONFIG, ATTEMPT, ROLE, SIGNAL, STEP, WORKFLOW
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference
from uwf_git.model.thread import Present
from uwf_git.model.transition_record import TransitionRecord

# What somebody asks for is mostly named as what happens by it.
_EVENT_OF = {"append": "amend"}


def check_step(
    nodes: NodeChecks, site: Site, record: TransitionRecord, head: NodeHash | None
) -> Generator[Trouble, None, Node | None]:
    """Give what a step's trailers say wrong of its node; *head* is the one before, if known.

    Returns:
        The StepNode; None if there is none to be read.
    """
    try:
        step = nodes.get(site, record.node)
    except StoreDamaged:
        return None  # told where it came in
    if step.type != STEP:
        yield site.trouble(f"Uwf-Node is {step.hash}, which is no StepNode", node=step.hash)
        return None
    prev = find_reference(step.payload["prev"])
    if head is not None and prev != head:
        yield site.trouble(
            f"step {step.hash} goes on from {prev}, and the head before was {head}", node=step.hash
        )
    yield from _check_actor(nodes, site, record, step)
    yield from _check_meta(nodes, site, record, step)
    return step


def check_attempt(
    nodes: NodeChecks, site: Site, record: TransitionRecord, present: Present
) -> Generator[Trouble, None, Node | None]:
    """Give what the trailers of a failed try say wrong of its node, which now.json names.

    Returns:
        The Attempt; None if there is none to be read.
    """
    name = present.last_attempt
    if name is None:
        yield site.trouble("now.json names no Attempt as lastAttempt")
        return None
    try:
        blob = nodes.find(site, name)
        attempt = None if blob is None else nodes.read(site, name, blob).node
    except StoreDamaged:
        return None  # told where it came in
    if attempt is None:
        message = f"now.json names {name} as lastAttempt, which is not in the commit"
        yield site.trouble(message, node=name)
    elif attempt.type != ATTEMPT:
        yield site.trouble(f"now.json names {name} as lastAttempt, which is no Attempt", node=name)
    else:
        number = attempt.payload["attempt"]
        if record.attempt != number:
            message = f"Uwf-Attempt is {record.attempt}, and {name} says {number}"
            yield site.trouble(message, node=name)
        yield from _check_actor(nodes, site, record, attempt)
        return attempt
    return None


def check_signal(
    nodes: NodeChecks, site: Site, record: TransitionRecord
) -> Generator[Trouble, None, Node | None]:
    """Give what the trailers of an event say wrong of its Signal node.

    Returns:
        The Signal; None if there is none to be read.
    """
    name = record.signal
    if name is None:
        return None  # told of the record
    try:
        blob = nodes.find(site, name)
        signal = None if blob is None else nodes.read(site, name, blob).node
    except StoreDamaged:
        return None  # told where it came in
    if signal is None:
        yield site.trouble(f"Uwf-Signal is {name}, which is not in the commit", node=name)
        return None
    if signal.type != SIGNAL:
        yield site.trouble(f"Uwf-Signal is {name}, which is no Signal", node=name)
        return None
    event = _EVENT_OF.get(signal.payload["action"], signal.payload["action"])
    if event != record.event:
        message = f"Uwf-Event is {record.event}, and {name} asks for {signal.payload['action']}"
        yield site.trouble(message, node=name)
        return None
    return signal


def _check_actor(
    nodes: NodeChecks, site: Site, record: TransitionRecord, turn: Node
) -> Iterator[Trouble]:
    role = turn.payload["role"]
    if record.role is not None and record.role != role:
        message = f"Uwf-Role is {record.role!r}, and {turn.hash} was played by {role!r}"
        yield site.trouble(message, node=turn.hash)
    agent = _get_if_there(nodes, site, turn.payload["agent"], AGENT_CONFIG)
    if agent is not None and record.agent is not None:
        program = agent_name(agent.payload["command"])
        if record.agent != program:
            message = f"Uwf-Agent is {record.agent!r}, and {turn.hash} was played by {program!r}"
            yield site.trouble(message, node=turn.hash)


def _check_meta(
    nodes: NodeChecks, site: Site, record: TransitionRecord, step: Node
) -> Iterator[Trouble]:
    workflow = _get_if_there(nodes, site, record.workflow, WORKFLOW)
    if workflow is None:
        return
    name = step.payload["role"]
    if name not in workflow.payload["roles"]:
        message = f"step {step.hash} was played by {name!r}, which is no role of the workflow"
        yield site.trouble(message, node=step.hash)
        return
    role = _get_if_there(nodes, site, workflow.payload["roles"][name], ROLE)
    # A role that is played by a whole workflow has no schema of its own.
    schema = None if role is None else role.payload.get("outputSchema")
    if schema is None:
        return
    node = _get_if_there(nodes, site, schema, None)
    if node is not None:
        part = (step.hash, "meta")
        yield from nodes.check_part(site, part, schema=node, value=step.payload["meta"])


def _get_if_there(
    nodes: NodeChecks, site: Site, reference: object, kind: NodeHash | None
) -> Node | None:
    """Give the node that a reference points at, if it is there, whole and of that type."""
    target = find_reference(reference)
    if target is None:
        return None
    try:
        node = nodes.get_shared(site, target)
    except StoreDamaged:
        return None  # told of what refers to it, or where it came in
    return node if kind is None or node.type == kind else None
