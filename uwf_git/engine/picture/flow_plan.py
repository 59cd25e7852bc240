"""The plan of a flow: its containers as blocks in blocks."""

from collections.abc import Mapping

from uwf_git.engine.picture.plan import (
    Block,
    Branch,
    FlowPlan,
    Mark,
    Marks,
    Subject,
    clean,
    clean_mark,
    name_subject,
)
from uwf_git.model.flow import DEFAULT_BOUND, HOLDING, ROOT, Flow, FlowNode
from uwf_git.model.transition import END, START

_WORDS: Mapping[str, str] = {"sequential": "sequence", "conditional": "if"}


def plan_flow(subject: Subject, flow: Flow) -> FlowPlan:
    """Return the plan of *flow*, the moves of *subject*."""
    marks: Marks = {} if subject.thread is None else subject.thread.marks
    planner = _Planner(flow, marks, subject.roles)
    return FlowPlan(
        name_subject(subject),
        clean(subject.description),
        tuple(planner.plan(place) for place in flow.list_from(ROOT)),
        (planner.mark(START), planner.mark(END)),
    )


class _Planner:
    """Plans the nodes of one flow."""

    def __init__(self, flow: Flow, marks: Marks, roles: Mapping[str, str]) -> None:
        self._flow = flow
        self._marks = marks
        self._roles = roles

    def mark(self, place: str) -> Mark | None:
        """Return the mark of *place*, with clean texts."""
        return clean_mark(self._marks.get(place))

    def plan(self, place: str) -> Block:
        """Return the block of the node at *place*."""
        node = self._flow.nodes[place]
        if node.kind in HOLDING:
            name, note = _heading(node), _condition(node)
        else:
            name, note = node.label, self._note(node)
        return Block(
            place, node.kind, clean(name), clean(note), self.mark(place), self._branches(node)
        )

    def _note(self, node: FlowNode) -> str:
        """Return what an agent or a workflow gives, and what it is unless its name says that."""
        parts = []
        if node.kind == "workflow":
            parts.append(f"workflow {node.fields['use']}")
        elif node.agent != node.label:
            parts.append(node.agent)
        if "output" in node.fields:
            parts.append(f"→ {node.output}")
        if node.verifier is not None:
            parts.append(f"verified by {node.verifier}")
        return " · ".join([*parts, *_rules(node)]) or self._described(node)

    def _described(self, node: FlowNode) -> str:
        described = node.fields.get("description")
        return str(described or (self._roles.get(node.agent, "") if node.kind == "agent" else ""))

    def _branches(self, node: FlowNode) -> tuple[Branch, ...]:
        if node.kind not in HOLDING:
            return ()
        blocks = tuple(self.plan(child) for child in self._flow.children(node.place))
        if node.kind == "parallel":
            return tuple(Branch("", (block,)) for block in blocks)
        if node.kind != "conditional":
            return (Branch("", blocks),)
        otherwise = self._flow.children(node.place, of_else=True)
        return (
            Branch("then", blocks),
            Branch("else", tuple(self.plan(child) for child in otherwise)),
        )


def _heading(node: FlowNode) -> str:
    word = _WORDS.get(node.kind, node.kind)
    named = node.fields.get("id") or node.fields.get("name")
    parts = [word if named is None else f"{word} “{named}”"]
    if node.kind == "loop" and not node.has_items:
        parts.append(f"at most {node.fields.get('maxIterations', DEFAULT_BOUND)}")
    return " · ".join([*parts, *_rules(node)])


def _condition(node: FlowNode) -> str:
    fields = node.fields
    items = f"for each {node.item} of {fields['over']}" if "over" in fields else ""
    if node.kind == "loop" and "condition" in fields:
        return f"{items}{', ' if items else ''}while {fields['condition']}"
    return items or str(fields.get("condition", ""))


def _rules(node: FlowNode) -> list[str]:
    """List the rules that change what happens, in few words."""
    fields = node.fields
    rules = []
    if fields.get("join") == "any":
        rules.append("the first wins")
    if fields.get("tolerate"):
        rules.append(f"{fields['tolerate']} may fail")
    if fields.get("onError") == "continue":
        rules.append("goes on after an error")
    if fields.get("onError") == "retry" or "retries" in fields:
        number = fields.get("retries")
        rules.append("tried again" if number is None else f"retries {number}")
    if "timeout" in fields:
        timeout = fields["timeout"]
        rules.append(f"timeout {timeout}" if isinstance(timeout, str) else f"{timeout / 1000:g} s")
    return rules
