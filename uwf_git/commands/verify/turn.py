"""Check a turn: the trailers of a step or a failed attempt against its node, meta against schema.

The workflow's own nodes are checked in the commit that adds them, not here.
"""

from collections.abc import Generator, Iterator

from uwf_git.agents.command_line import agent_name
from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.commands.verify.nodes import NodeChecks
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import AGENT_CONFIG, ATTEMPT, ROLE, SIGNAL, STEP_TYPES, WORKFLOW, is_kind
from uwf_git.model.event_rules import event_of
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference
from uwf_git.model.thread import ThreadState
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.model.usage import find_unfit


def check_step(
    nodes: NodeChecks, site: Location, record: TransitionRecord, head: NodeHash | None
) -> Generator[Finding, None, Node | None]:
    """Check a step's trailers against its node; *head* is the one before, if known.

    Returns:
        The StepNode; None if it cannot be read.
    """
    try:
        step = nodes.get(site, record.node)
    except StoreDamaged:
        return None  # reported for the commit that added it
    if step.type not in STEP_TYPES:
        yield site.finding(f"Uwf-Node is {step.hash}, which is no StepNode", node=step.hash)
        return None
    prev = find_reference(step.payload["prev"])
    if head is not None and prev != head:
        yield site.finding(
            f"step {step.hash} goes on from {prev}, and the head before was {head}", node=step.hash
        )
    yield from _check_actor(nodes, site, record, step)
    yield from _check_meta(nodes, site, record, step)
    return step


def check_joined(nodes: NodeChecks, site: Location, record: TransitionRecord) -> Iterator[Finding]:
    """Check the meta of a join against the role of the graph that its branch played."""
    workflow = _get_if_there(nodes, site, {"$ref": record.workflow}, WORKFLOW)
    if workflow is None or "moderator" not in workflow.payload:
        return
    try:
        step = nodes.get(site, record.node)
    except StoreDamaged:
        return  # reported for the join
    yield from _check_meta(nodes, site, record, step)


def check_attempt(
    nodes: NodeChecks, site: Location, record: TransitionRecord, present: ThreadState
) -> Generator[Finding, None, Node | None]:
    """Check the trailers of a failed attempt against its node, which now.json names.

    Returns:
        The Attempt; None if it cannot be read.
    """
    name = present.last_attempt
    if name is None:
        yield site.finding("now.json names no Attempt as lastAttempt")
        return None
    try:
        blob = nodes.find(site, name)
        attempt = None if blob is None else nodes.read(site, name, blob).node
    except StoreDamaged:
        return None  # reported for the commit that added it
    if attempt is None:
        message = f"now.json names {name} as lastAttempt, which is not in the commit"
        yield site.finding(message, node=name)
    elif attempt.type != ATTEMPT:
        yield site.finding(f"now.json names {name} as lastAttempt, which is no Attempt", node=name)
    else:
        number = attempt.payload["attempt"]
        if record.attempt != number:
            message = f"Uwf-Attempt is {record.attempt}, and {name} says {number}"
            yield site.finding(message, node=name)
        yield from _check_actor(nodes, site, record, attempt)
        return attempt
    return None


def check_wait(nodes: NodeChecks, site: Location, record: TransitionRecord) -> Iterator[Finding]:
    """Check that the role that waits for a person is one of the workflow."""
    workflow = _get_if_there(nodes, site, {"$ref": record.workflow}, WORKFLOW)
    if workflow is not None and record.role not in workflow.payload["roles"]:
        yield site.finding(f"Uwf-Role is {record.role!r}, which is no role of the workflow")


def check_signal(
    nodes: NodeChecks, site: Location, record: TransitionRecord
) -> Generator[Finding, None, Node | None]:
    """Check the trailers of an event against its Signal node.

    Returns:
        The Signal; None if it cannot be read.
    """
    name = record.signal
    if name is None:
        return None  # reported for the record
    try:
        blob = nodes.find(site, name)
        signal = None if blob is None else nodes.read(site, name, blob).node
    except StoreDamaged:
        return None  # reported for the commit that added it
    if signal is None:
        yield site.finding(f"Uwf-Signal is {name}, which is not in the commit", node=name)
        return None
    if signal.type != SIGNAL:
        yield site.finding(f"Uwf-Signal is {name}, which is no Signal", node=name)
        return None
    if event_of(signal.payload["action"]) != record.event:
        message = f"Uwf-Event is {record.event}, and {name} asks for {signal.payload['action']}"
        yield site.finding(message, node=name)
        return None
    return signal


def _check_actor(
    nodes: NodeChecks, site: Location, record: TransitionRecord, turn: Node
) -> Iterator[Finding]:
    unfit = find_unfit(turn.payload.get("usage") or {})
    if unfit is not None:
        yield site.finding(f"in the usage of {turn.hash} {unfit}", node=turn.hash)
    role = turn.payload["role"]
    if record.role is not None and record.role != role:
        message = f"Uwf-Role is {record.role!r}, and {turn.hash} was played by {role!r}"
        yield site.finding(message, node=turn.hash)
    agent = _get_if_there(nodes, site, turn.payload["agent"], AGENT_CONFIG)
    if agent is not None and record.agent is not None:
        program = agent_name(agent.payload["command"])
        if record.agent != program:
            message = f"Uwf-Agent is {record.agent!r}, and {turn.hash} was played by {program!r}"
            yield site.finding(message, node=turn.hash)


def _check_meta(
    nodes: NodeChecks, site: Location, record: TransitionRecord, step: Node
) -> Iterator[Finding]:
    workflow = _get_if_there(nodes, site, record.workflow, WORKFLOW)
    if workflow is None:
        return
    name = step.payload["role"]
    if name not in workflow.payload["roles"]:
        message = f"step {step.hash} was played by {name!r}, which is no role of the workflow"
        yield site.finding(message, node=step.hash)
        return
    role = _get_if_there(nodes, site, workflow.payload["roles"][name], ROLE)
    # A role that a whole workflow plays has no schema of its own.
    schema = None if role is None else role.payload.get("outputSchema")
    if schema is None:
        return
    node = _get_if_there(nodes, site, schema, None)
    if node is not None:
        part = (step.hash, "meta")
        yield from nodes.check_part(site, part, schema=node, value=step.payload["meta"])


def _get_if_there(
    nodes: NodeChecks, site: Location, reference: object, kind: NodeHash | None
) -> Node | None:
    """Return the node that a reference names; None if missing, damaged or of another type."""
    target = find_reference(reference)
    if target is None:
        return None
    try:
        node = nodes.get_shared(site, target)
    except StoreDamaged:
        return None  # reported for the node that refers to it, or the commit that added it
    return node if kind is None or is_kind(node.type, kind) else None
