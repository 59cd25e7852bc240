"""Check what a commit says in words: its author, and what its subject and body quote.

What no node holds, a person's name and note, only a signature proves.
Format: FORMAT.md, "Quotes" and "Identities and dates".
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from uwf_git.agents.command_line import agent_name
from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.commands.verify.nodes import NodeChecks
from uwf_git.engine.subject import list_quotes, render_meta
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import (
    AGENT_CONFIG,
    ATTEMPT,
    ROLE,
    SIGNAL,
    START,
    STEP,
    WORKFLOW,
    is_kind,
)
from uwf_git.model.event_rules import STEPS
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference, reference
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.git.identity import agent_identity
from uwf_git.store.objects.message import (
    LONGEST_QUOTE,
    LONGEST_SUBJECT,
    body_of,
    build_body,
    build_subject,
    one_line,
    raw_body_of,
    subject_of,
)
from uwf_git.store.objects.strict_commit import StrictCommit

_HAND_MADE = (
    "no version of uwf writes such a commit: it was made by hand; another copy of this store "
    "may have the original history: `git fetch`"
)
_PLAYED = frozenset({"step", "attempt"})
# Their bodies are a person's words, which no node holds.
_NOTED = frozenset({"answer", "fork", "kill"})
_LONGEST_WORDING = 60
_MOST_SHOWN = 80
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_CUT_NUMBER = re.compile(r"[-+.\deE]*…?$")


class Wording(NamedTuple):
    """The words of one commit."""

    site: Location
    commit: StrictCommit
    record: TransitionRecord
    node: Node | None
    """Its StartNode, StepNode, Attempt or Signal; None if it has none, or none can be read."""

    @property
    def who(self) -> str:
        """The beginning of its subject: the role, else the event."""
        if self.node is not None and _is_one_of(self.node, STEP, ATTEMPT):
            return str(self.node.payload["role"])
        return self.record.role or self.record.event

    @property
    def subject(self) -> str:
        """Its first line."""
        return subject_of(self.commit.view.message)

    @property
    def said(self) -> str:
        """What follows *who* in its subject."""
        return self.subject.removeprefix(build_subject(self.who, "")).removeprefix(" ")

    def is_said(self, text: str) -> bool:
        """Check whether its subject says *text*, as far as a subject may be long."""
        return self.subject == build_subject(self.who, text)

    def finding(self, message: str) -> Finding:
        """Return a finding on these words."""
        name = None if self.node is None else self.node.hash
        return self.site.finding(message, hint=_HAND_MADE, node=name)


def check_wording(
    nodes: NodeChecks,
    site: Location,
    commit: StrictCommit,
    record: TransitionRecord,
    last_attempt: NodeHash | None,
) -> Iterator[Finding]:
    """Check the words of a commit against its nodes; *last_attempt* is that of its now.json."""
    try:
        node = _find_node(nodes, site, record, last_attempt)
        yield from _check(nodes, Wording(site, commit, record, node))
    except StoreDamaged:
        return  # reported for the commit that added the node


def _check(nodes: NodeChecks, wording: Wording) -> Iterator[Finding]:
    commit, node = wording.commit, wording.node
    expected = None
    if wording.record.event in _PLAYED:
        if node is None:
            return  # reported for its trailers
        agent = _get(nodes, wording.site, node.payload["agent"], AGENT_CONFIG)
        if agent is None:
            return  # reported for the node
        expected = agent_identity(wording.who, agent_name(agent["command"]))
    problem = find_author_problem(commit, expected)
    if problem is not None:
        yield wording.finding(problem)
    problem = find_subject_problem(commit, wording.who)
    if problem is not None:
        yield wording.finding(problem)
    elif node is not None and not _quotes(nodes, wording, node):
        told = f"its subject says {_shown(wording.said)}, which node {node.hash} does not"
        yield wording.finding(told)
    body = _find_body(nodes, wording)
    if body is not None and raw_body_of(commit.view.message) != build_body(body):
        told = _shown(body_of(commit.view.message))
        yield wording.finding(f"its body is {told}, and its nodes give {_shown(body)}")


def find_author_problem(commit: StrictCommit, expected: bytes | None = None) -> str | None:
    """Return what is wrong with the author of a commit, or None.

    *expected* is the identity of the role and program that acted; None: the committer acted.
    """
    author, committer = commit.author, commit.committer
    right = committer.identity if expected is None else expected
    if author.identity != right:
        names = [_shown(each.decode(errors="replace")) for each in (author.identity, right)]
        return f"its author is {names[0]}, and must be {names[1]}"
    if author.date != committer.date:
        dates = [each.date.decode(errors="replace") for each in (author, committer)]
        return f"its author's date is {dates[0]}, and its committer's {dates[1]}"
    return None


def find_subject_problem(commit: StrictCommit, who: str) -> str | None:
    """Return what is wrong with a subject that must begin with *who*, or None."""
    subject, beginning = subject_of(commit.view.message), build_subject(who, "")
    if subject == beginning or subject.startswith(f"{beginning} "):
        return None
    return f"its subject is {_shown(subject)}, and must begin with {_shown(beginning)}"


def _find_node(
    nodes: NodeChecks, site: Location, record: TransitionRecord, last_attempt: NodeHash | None
) -> Node | None:
    """Return the node that the commit is about; None if it has none, or one of another type."""
    name, kind = record.signal, SIGNAL
    if record.event in STEPS:
        name, kind = record.node, STEP
    elif record.event == "start":
        name, kind = record.node, START
    elif record.event == "attempt":
        name, kind = last_attempt, ATTEMPT
    node = None if name is None else nodes.get(site, name)
    return node if node is not None and is_kind(node.type, kind) else None


def _quotes(nodes: NodeChecks, wording: Wording, node: Node) -> bool:
    """Check whether the subject quotes *node*."""
    payload = node.payload
    if is_kind(node.type, STEP):
        return _quotes_step(nodes, wording, payload)
    if node.type == ATTEMPT:
        failed = wording.said.partition(":")[0]
        told = f"{failed}: {payload['error']['message']}"
        return len(failed) <= _LONGEST_WORDING and wording.is_said(told)
    if node.type == START:
        return any(map(wording.is_said, list(list_quotes(payload["prompt"])) or [""]))
    quotes = [quote for quote in list_quotes(payload.get("reason", "")) if quote]
    return not quotes or any(map(wording.is_said, quotes))


def _quotes_step(nodes: NodeChecks, wording: Wording, step: dict[str, Any]) -> bool:
    """Check whether the subject quotes the meta or the content of a step, the cheapest first."""
    meta = step["meta"]
    values = meta.values() if isinstance(meta, dict) else ()
    texts = [value for value in values if isinstance(value, str)]
    if any(wording.is_said(quote) for text in texts for quote in list_quotes(text)):
        return True
    rendered = render_meta(meta)
    if wording.is_said(rendered):
        return True
    content = find_reference(step["content"])
    if content is not None:
        text = nodes.get_text(wording.site, content)
        if any(map(wording.is_said, list_quotes(text))):
            return True
    return _has_same_numbers(wording, one_line(rendered))


def _has_same_numbers(wording: Wording, rendered: str) -> bool:
    """Check whether the subject is the meta with its numbers written otherwise, as 1.0 for 1."""
    said, full = wording.said, _NUMBER.sub(_plain_number, rendered)
    if len(wording.subject) < LONGEST_SUBJECT - 1:
        return _NUMBER.sub(_plain_number, said) == full
    return full.startswith(_NUMBER.sub(_plain_number, _CUT_NUMBER.sub("", said)))


def _plain_number(found: re.Match[str]) -> str:
    return repr(float(found[0]))


def _get(nodes: NodeChecks, site: Location, target: Any, kind: NodeHash) -> Any:
    """Return the payload of the node that *target* refers to; None if it is of another type."""
    name = find_reference(target)
    node = None if name is None else nodes.get_shared(site, name)
    return node.payload if node is not None and is_kind(node.type, kind) else None


def _find_body(nodes: NodeChecks, wording: Wording) -> str | None:
    """Return the text that is the body; None if no node has it."""
    record, site, node = wording.record, wording.site, wording.node
    if record.event in _NOTED:
        return None
    if record.event == "wait":
        workflow = _get(nodes, site, reference(record.workflow), WORKFLOW) or {"roles": {}}
        role = _get(nodes, site, workflow["roles"].get(record.role), ROLE)
        if role is None:
            return None  # reported for the role
        return str(role.get("systemPrompt") or role.get("description", ""))[:LONGEST_QUOTE]
    if node is None:
        return "" if record.event == "end" else None
    if node.type == ATTEMPT:
        stderr = find_reference(node.payload.get("stderr"))
        return "" if stderr is None else nodes.get_text(site, stderr)[-LONGEST_QUOTE:]
    return "" if _is_one_of(node, START, STEP) else str(node.payload.get("reason", ""))


def _is_one_of(node: Node, *kinds: NodeHash) -> bool:
    return any(is_kind(node.type, kind) for kind in kinds)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…")
