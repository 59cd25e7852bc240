"""Make a commit of a thread again: from the thread before, the event's own node, and what is free.

Whoever asks is told why there can be no such commit, or gets the commit that there must be.
Format: FORMAT.md, "What is free".
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from uwf_git.agents.command_line import agent_name
from uwf_git.commands.verify.history import Finding, Location
from uwf_git.commands.verify.nodes import TreeChecks
from uwf_git.engine.flow_move import (
    Rules,
    find_given_up,
    find_lost_place,
    find_other_change,
    is_possible,
)
from uwf_git.engine.flow_state import (
    describe_rejection,
    find_open_try,
    find_patch_problem,
    find_state_problem,
    fold_turn,
    is_verdict_due,
    judge_again,
)
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import (
    AGENT_CONFIG,
    ATTEMPT,
    BUILTIN,
    SIGNAL,
    START,
    STEP,
    WORKFLOW,
    find_reference,
)
from uwf_git.model.event_folds import (
    Cause,
    Standing,
    Words,
    describe_event,
    describe_start,
    describe_unrounded,
    needs_text,
)
from uwf_git.model.event_rules import (
    RULES,
    SIGNALLED,
    STEPS,
    apply_event,
    begin_thread,
    event_of,
    may_follow,
)
from uwf_git.model.flow import NotAPosition, Position, parse_position
from uwf_git.model.limits import LIMITS, find_limit_problem
from uwf_git.model.names import NodeHash, Oid, ThreadId
from uwf_git.model.node import Node, canonical
from uwf_git.model.text import cut
from uwf_git.model.thread import Event, NotAPresent, ThreadState, TransitionRecord, find_unfit
from uwf_git.model.workflow import END, NotAWorkflow, parse_flow_node, parse_graph
from uwf_git.store.git.program import agent_identity, is_clean
from uwf_git.store.lookup import object_id
from uwf_git.store.nodes import DamagedNode, MissingNode, identify_node
from uwf_git.store.objects.commit import (
    CommitView,
    body_of,
    encode_json,
    parse_trailers,
    raw_body_of,
    read_commit,
    read_commit_file,
    subject_of,
)
from uwf_git.store.objects.objects import ObjectStore, get_blob
from uwf_git.store.objects.strict import StrictCommit
from uwf_git.store.threads.history import (
    NOW_FILE,
    Snapshot,
    build_thread_message,
    parse_now,
    parse_thread_message,
)

# Make a commit again from its event, its new nodes and what is free; compare it byte by byte.
#
# Free are the committer, the date, the signature, and what FORMAT.md lists for each event; all
# else follows, by the functions that writers use. Format: FORMAT.md, "What is free".

HAND_MADE = (
    "no version of uwf writes such a commit: it was made by hand; another copy of this store "
    "may have the original history: `uwf fetch`"
)
# Once written, and read as what is written now: 1.0 where a sum of usage became whole, and no
# attempts where a place was given up after some.
_USAGE = re.compile(rb'^  "usage": \{\n(?:   .*\n)*+', re.MULTILINE)
_WHOLE = re.compile(rb"\.0(?=,?$)", re.MULTILINE)
_NO_TRIES = re.compile(rb'^  "attempts": 0,\n(?=  "lastAttempt": )', re.MULTILINE)
_MOST_SHOWN = 80
_MOST_TOLD = 10


class Made(NamedTuple):
    standing: Standing
    words: Words
    author: bytes | None
    """``name <email>``; None: the committer's."""

    now: bytes


def make(standing: Standing, words: Words, author: bytes | None = None) -> Made:
    """Return the commit after which the thread is at *standing*."""
    return Made(standing, words, author, encode_json(standing.state.as_document()))


def compare(site: Location, commit: StrictCommit, now: bytes, made: Made) -> Iterator[Finding]:
    told, right = commit.view.message, build_thread_message(made.standing.record, made.words)
    troubles = list_wrong(told, right)
    if made.now != now and made.now != write_anew(now):
        troubles += _compare_now(now, made.standing.state)
    if (problem := find_author_problem(commit, made.author)) is not None:
        troubles.append(problem)
    for each in troubles:
        yield site.finding(each, hint=HAND_MADE, node=made.standing.record.cause)


def write_anew(now: bytes) -> bytes:
    """Return a ``now.json`` of an older version of uwf as it is written now."""
    return _NO_TRIES.sub(b"", _USAGE.sub(lambda usage: _WHOLE.sub(b"", usage[0]), now))


def list_wrong(message: bytes, expected: bytes) -> list[str]:
    """List how *message* differs from the message that it must be."""
    if message == expected:
        return []
    told, right = parse_trailers(message), parse_trailers(expected)
    wrong = [
        f"{name} is {_value(told.get(name))}, and must be {_value(right.get(name))}"
        for name in dict.fromkeys([*right, *told])
        if told.get(name) != right.get(name)
    ]
    for part, read, show in (("subject", subject_of, subject_of), ("body", raw_body_of, body_of)):
        if read(message) != read(expected):
            shown = _shown(show(message)), _shown(show(expected))
            wrong.append(f"its {part} is {shown[0]}, and must be {shown[1]}")
    return wrong or ["its message is not written as uwf writes it"]


def _value(value: str | None) -> str:
    if value is None:
        return "absent"
    return value if value.isascii() and value.isalnum() else _shown(value)


def _compare_now(content: bytes, expected: ThreadState) -> Iterator[str]:
    try:
        document = parse_now(content).document
    except NotAPresent:
        return  # reported as the file was read
    lies = list(list_differences("", document, canonical(expected.as_document())))
    yield from lies[:_MOST_TOLD]
    if not lies:
        yield "now.json has what the history gives, and is not written as uwf writes it"


def list_differences(path: str, told: Any, right: Any) -> Iterator[str]:
    """List where a document differs from what the history gives, by path; keys in any order."""
    if isinstance(told, Mapping) and isinstance(right, Mapping) and path.count(".") < _MOST_SHOWN:
        for key in dict.fromkeys([*right, *told]):
            inner = f"{path}.{key}" if path else key
            yield from list_differences(inner, told.get(key), right.get(key))
    elif _text(told) != _text(right):
        yield f"now.json says {path} {_json(told)}, and the history gives {_json(right)}"


def _text(value: Any) -> str:
    # As text: to Python, True == 1.
    return json.dumps(value, sort_keys=True, default=dict)


def _json(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False, default=dict)
    return cut(text, _MOST_SHOWN)


def find_author_problem(commit: StrictCommit, expected: bytes | None = None) -> str | None:
    """Return what is wrong with the author, or None.

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
    if not is_clean(committer.identity):
        name = _shown(committer.identity.decode(errors="replace"))
        return f"its committer is {name}, which uwf would have cleaned"
    return None


def _shown(text: str) -> str:
    return repr(cut(text, _MOST_SHOWN))


class CannotBe(Exception):
    def __init__(self, *problems: str, node: str | None = None) -> None:
        super().__init__(*problems)
        self.problems, self.node = problems, node


class Making(NamedTuple):
    trees: TreeChecks
    site: Location
    view: CommitView
    record: TransitionRecord
    start: bytes

    before: Standing | None
    """Where the thread stood before; None if that cannot be read, or there is nothing before."""

    def make(self) -> Made | None:
        """Return the commit; None if another finding says why nothing can be said."""
        record = self.record
        node = self._read_cause()
        if record.event == "start":
            return None if node is None else self._make_start(node)
        if self.before is None:
            return None
        problems = [*check_person(self.before, record), *self._check_turn(self.before, node)]
        if problems:
            raise CannotBe(*problems, node=record.cause)
        cause = self._find_cause(self.before, node)
        self._check_way(self.before, cause)
        cause = self._complete(self.before, cause)
        after = apply_event(self.before, record.event, cause)
        played = record.event in {"step", "attempt"}
        author = agent_identity(cause.role or "", cause.agent or "") if played else None
        words = describe_event(self.before, record.event, cause)
        if record.event == "amend":
            older = describe_unrounded(self.before, cause)
            if self.view.message == build_thread_message(after.record, older):
                words = older
        return make(after, words, author)

    def _read_cause(self) -> Node | None:
        event, name = self.record.event, self.record.cause
        if (name is not None) != RULES[event].has_node:
            raise CannotBe(f"{event} has {'no' if name is None else 'an'} Uwf-Cause")
        if name is None:
            return None
        try:
            node = self.trees.nodes.get(self.site, name)
        except MissingNode:
            raise CannotBe(f"Uwf-Cause is {name}, which is not in the commit", node=name) from None
        kind = STEP if event in STEPS else {"start": START, "attempt": ATTEMPT}.get(event, SIGNAL)
        if node.type != kind:
            title = BUILTIN[kind].payload["title"]
            raise CannotBe(f"Uwf-Cause is {name}, which is no {title}", node=name)
        if event in SIGNALLED and event_of(node.payload["action"]) != event:
            asked = f"{name} asks for {node.payload['action']}"
            raise CannotBe(f"Uwf-Event is {event}, and {asked}", node=name)
        return node

    def _make_start(self, start: Node) -> Made | None:
        workflow = self.trees.nodes.get(self.site, _target(start.payload["workflow"]))
        if workflow.type != WORKFLOW:
            return None  # told as the node was checked
        depth, parent = start.payload.get("depth", 0), self.record.parent_thread
        # These fields say where a branch begins, which is a derived commit.
        problems = [
            f"start.json has {field}, and the thread began as no branch"
            for field in sorted({"entry", "parent"} & start.payload.keys())
        ]
        if bool(depth) != (parent is not None):
            told = f"Uwf-Parent-Thread is {parent or 'absent'}, and start.json has depth {depth}"
            problems.insert(0, told)
        limits = {name: start.payload[name] for name in LIMITS if name in start.payload}
        if problems := [*problems, *list_bad_limits(limits)]:
            raise CannotBe(*problems, node=start.hash)
        name, state = workflow.payload["name"], workflow.payload.get("initialState")
        begun = begin_thread(self.record.thread, start, name, initial_state=state, parent=parent)
        return make(begun, describe_start(start.payload["prompt"]))

    def _find_cause(self, before: Standing, node: Node | None) -> Cause:
        """Return what the event brings in, from its node and from what is free."""
        record = self.record
        cause = Cause(node=node, role=record.role, at=record.at, files=record.files)
        # The body of these is free: a person's note or reason.
        if record.event in {"answer", "fork", "kill"}:
            cause = cause._replace(note=body_of(self.view.message))
        if record.event == "fork":
            return cause._replace(thread=record.thread)
        if record.event == "wait":
            asked = self._get_role(before.state.workflow, record.role)
            question = asked.get("systemPrompt") or asked.get("description", "")
            return cause._replace(text=str(question))
        if node is None or not RULES[record.event].may_change_files:
            return cause
        agent = self.trees.nodes.get_shared(self.site, _target(node.payload["agent"]))
        if agent.type != AGENT_CONFIG:
            raise DamagedNode(agent.hash, "is no AgentConfig")  # told as the turn was checked
        command = agent.payload["command"]
        if (command.strip() == _PERSON) != (record.event == "answer"):
            told = f"{record.event} is by {_shown(command)}, and only an answer is by {_PERSON!r}"
            raise CannotBe(told, node=node.hash)
        return cause._replace(
            role=node.payload["role"],
            agent=agent_name(command),
            has_retries=record.retries_left is not False,
            text=self._find_text(before, node),
        )

    def _find_text(self, before: Standing, turn: Node) -> str:
        """Return the content of a step or the log of an attempt, if the commit follows from it."""
        event = self.record.event
        target = find_reference(turn.payload.get("stderr" if event == "attempt" else "content"))
        is_flow = "flow" in self._get_payload(before.state.workflow)
        if target is None or not (is_flow or needs_text(event, turn.payload)):
            return ""
        return self.trees.nodes.get_text(self.site, target)

    def _check_turn(self, before: Standing, node: Node | None) -> Iterator[str]:
        event = self.record.event
        if node is not None and event in STEPS:
            prev = find_reference(node.payload["prev"])
            if prev != before.record.node:
                head = before.record.node
                yield f"step {node.hash} goes on from {prev}, and the head before was {head}"
        if node is not None and RULES[event].may_change_files:
            usage = node.payload.get("usage") or {}
            nulls = [f"{name} is null" for name, value in usage.items() if value is None]
            if (unfit := find_unfit(usage) or next(iter(nulls), None)) is not None:
                yield f"in the usage of {node.hash} {unfit}"
            number = before.state.begin_tries(self.record.at).attempts + 1
            if event == "attempt" and node.payload["attempt"] != number:
                yield f"{node.hash} is attempt {node.payload['attempt']}, and must be {number}"
            if "branches" in node.payload:
                yield f"{event} {node.hash} has branches, and is no join"
            if event == "answer" and "durationMs" in node.payload:
                yield f"answer {node.hash} has a durationMs, and counts for no limit"

    def _check_way(self, before: Standing, cause: Cause) -> None:
        """Refuse a turn or an end that cannot come next."""
        event = self.record.event
        if not RULES[event].has_place and event != "end":
            return
        way = Way(before, *self.read_rules(before.state.workflow))
        turn = self.record._replace(role=cause.role)
        if event == "end":
            problem = way.find_move_problem(None)
        else:
            problem = way.find_turn_problem(turn, self._get_role(before.state.workflow, turn.role))
        if problem is not None:
            raise CannotBe(problem, node=self.record.cause)

    def _complete(self, before: Standing, cause: Cause) -> Cause:
        """Return *cause* with what the history, the place or the new rules add to it."""
        event = self.record.event
        if event == "poke":
            try:
                poked = find_poked(self.trees.objects, self.view.parents[0])
            except NotAPresent as error:
                raise CannotBe(f"what the poke goes back to cannot be read: {error}") from error
            if poked is None:
                told = "poke comes after no step that can be taken again"
                raise CannotBe(told, node=self.record.cause)
            return cause._replace(back_to=poked)
        if event == "amend" and cause.node is not None:
            return self._check_amend(before, cause, cause.node)
        if event == "patch" and self.read_rules(before.state.workflow)[0].flow is not None:
            state = apply_event(before, event, cause).state.state
            problem = find_patch_problem(cause.payload.get("patch")) or find_state_problem(state)
            if problem is not None:
                raise CannotBe(f"the patch cannot be applied: {problem}", node=self.record.cause)
        return self._add_place(before, cause) if RULES[event].has_place else cause

    def _check_amend(self, before: Standing, cause: Cause, signal: Node) -> Cause:
        """Return the *cause* with the name of the workflow that is in force afterwards."""
        try:
            is_branch = Snapshot(self.trees.recent, self.view, self.record).get_trunk() is not None
        except StoreDamaged:
            is_branch = False  # told for start.json
        after = apply_event(before, "amend", cause)
        old, new = (self.read_rules(each.state.workflow)[0] for each in (before, after))
        if wrong := list(check_amend((before, after), (old, new), signal, is_branch=is_branch)):
            raise CannotBe(*wrong, node=signal.hash)
        return cause._replace(workflow_name=str(new.payload["name"]))

    def _add_place(self, before: Standing, cause: Cause) -> Cause:
        rules, entry = self.read_rules(before.state.workflow)
        flow, record = rules.flow, self.record
        if flow is None:
            return cause
        at = parse_position(record.at or "")
        given_up = find_given_up(flow, at, entry=entry)
        cause = cause._replace(gives_up=None if given_up is None else str(given_up))
        if record.event not in STEPS:
            return cause
        node, state, step = flow.nodes[at.place], before.state, cause.payload
        is_verdict = is_verdict_due(node, state.tried, str(at))
        result = fold_turn(node, state.state, step, cause.text, is_verdict=is_verdict)
        if (problem := find_state_problem(result)) is not None:
            raise CannotBe(f"the result cannot be applied: {problem}", node=record.cause)
        cause = cause._replace(state=result)
        if node.verifier is None:
            return cause
        if not is_verdict:
            return cause._replace(verdict="due")
        verdict = judge_again(flow, node, step["meta"])
        if verdict == "unknown":
            verdict = "accepted" if record.retries_left is None else "rejected"
        rejection = describe_rejection(node.verifier, step["meta"])
        return cause._replace(verdict=verdict, rejection=rejection)

    def find_schema(self, workflow: NodeHash, role: str) -> Node | None:
        # A role that a whole workflow plays may have no schema of its own.
        return self._find_part(self._get_role(workflow, role), "outputSchema")

    def _get_role(self, workflow: NodeHash, role: str | None) -> Mapping[str, Any]:
        target = find_reference(self._get_payload(workflow).get("roles", {}).get(role))
        return {} if target is None else self._get_payload(target)

    def _get_payload(self, name: NodeHash) -> Mapping[str, Any]:
        payload = self.trees.nodes.get_shared(self.site, name).payload
        return payload if isinstance(payload, dict) else {}

    def read_rules(self, workflow: NodeHash) -> tuple[Rules, Position | None]:
        rules, entries = self.trees.rules, self.trees.entries
        if workflow not in rules:
            node = self.trees.nodes.get_shared(self.site, workflow)
            if node.type != WORKFLOW:
                raise NotAWorkflow(node, "workflow")
            flow, graph = (self._find_part(node.payload, each) for each in ("flow", "moderator"))
            rules[workflow] = Rules(
                node.payload,
                None if flow is None else parse_flow_node(flow),
                None if graph is None else parse_graph(graph),
            )
        if rules[workflow].flow is None:
            return rules[workflow], None
        if self.start not in entries:
            try:
                start = identify_node(get_blob(self.trees.recent, object_id(self.start)))
            except ValueError as error:
                raise NotAPosition(f"start.json is not a node: {error}") from error
            entry = start.payload.get("entry") if start.type == START else None
            entries[self.start] = None if entry is None else parse_position(entry)
        return rules[workflow], entries[self.start]

    def _find_part(self, payload: Mapping[str, Any], field: str) -> Node | None:
        name = find_reference(payload.get(field))
        return None if name is None else self.trees.nodes.get_shared(self.site, name)


def _target(reference: object) -> NodeHash:
    """Return the node that *reference* names; its schema was checked."""
    return find_reference(reference) or NodeHash("")


_PERSON = "human"


def check_record(
    before: TransitionRecord | None, record: TransitionRecord, thread: ThreadId | None
) -> Iterator[str]:
    """List why *record* cannot follow *before*; it must be of *thread* if that is known."""
    event = record.event
    if thread is not None and record.thread != thread:
        yield f"Uwf-Thread is {record.thread}, and this is the history of {thread}"
    if record.parent_thread == record.thread:
        yield "Uwf-Parent-Thread is the thread itself"
    if before is None:
        return
    if event == "start":
        yield "Uwf-Event is start, and it has a parent"
    elif not may_follow(event, before.status):
        yield f"Uwf-Event is {event}, after the thread was {before.status}"


def check_parents(event: Event, count: int) -> Iterator[str]:
    wanted = RULES[event].parents
    if wanted is not None and count != wanted:
        yield f"{event} has {count} parents, and {'must have one' if wanted else 'may have none'}"


def check_person(before: Standing, record: TransitionRecord) -> Iterator[str]:
    """List what is wrong with *record* where a person's answer is awaited, or is not."""
    waiting = before.state.waiting
    is_awaited = waiting is not None and waiting.until is None
    event = record.event
    person = RULES[event].person
    if person == "never" and before.record.status == "waiting" and is_awaited:
        yield f"Uwf-Event is {event}, and the thread waited for a person"
    if person != "only":
        return
    if waiting is None or not is_awaited:
        yield f"Uwf-Event is {event}, and the thread did not wait for a person"
    elif record.role != waiting.role:
        yield f"Uwf-Role is {record.role!r}, and the thread waited for {waiting.role!r}"
    elif record.at != waiting.at:
        yield f"Uwf-At is {record.at}, and the thread waited at {waiting.at}"


class Way:
    """Where a thread may go from *before*, by the rules in force there."""

    def __init__(self, before: Standing, rules: Rules, entry: Position | None) -> None:
        """Take the rules; *entry* is where the thread began in its flow, if it is a branch."""
        self._before, self._rules, self.entry = before.state, rules, entry
        self.flow = rules.flow

    def find_turn_problem(self, record: TransitionRecord, role: Mapping[str, Any]) -> str | None:
        """Return why *record* cannot be; *role* is the payload of the role that acts."""
        if record.role not in self._rules.payload["roles"]:
            return f"Uwf-Role is {record.role!r}, which is no role of the workflow"
        waiting = self._before.waiting
        if self.flow is None:
            if record.at is not None:
                return f"{record.event} has an Uwf-At, and the workflow is a graph"
            if waiting is not None and waiting.role == record.role:
                return None  # checked when it began to wait
            problem = self._find_graph_problem(record.role or "")
            if "workflow" in role:
                problem = "which a workflow plays: the thread splits there"
            return None if problem is None else f"Uwf-Role is {record.role!r}, {problem}"
        try:
            at = parse_position(record.at or "")
        except NotAPosition:
            return f"Uwf-At is {record.at}, which is no position"
        problem = self._find_place_problem(record, at)
        return None if problem is None else f"Uwf-At is {record.at}, {problem}"

    def find_move_problem(self, at: str | None) -> str | None:
        """Return why the thread cannot split at the place or role *at*, None for its end."""
        if self.flow is None:
            problem = self._find_graph_problem(at or END)
        else:
            problem = self.find_flow_problem(None if at is None else parse_position(at))
        told = "the thread ends" if at is None else f"Uwf-At is {at}"
        return None if problem is None else f"{told}, {problem}"

    def _find_graph_problem(self, to: str) -> str | None:
        """Return why no transition leads from the thread's role to *to*; None if one may."""
        role = self._before.role
        for way in (self._rules.graph or {}).get(role, ()):
            if way.to == to:
                return None
            if way.condition is None:
                break
        return f"where no transition leads from {role}"

    def find_flow_problem(self, at: Position | None) -> str | None:
        """Return why no condition leads to *at*, None for the end; None if one may."""
        before, flow = self._before, self.flow
        if flow is None:
            raise ValueError("a graph has no places")  # a bug of the caller
        last, tried = find_open_try(flow, before.tried, before.at, entry=self.entry)
        if tried is not None:
            return None if tried == at else f"and the try at {tried} was not over"
        try:
            previous = None if last is None else parse_position(last)
        except NotAPosition:
            return f"and now.json said {last}"
        if not is_possible(flow, previous, at, entry=self.entry):
            return f"where no condition leads from {last or 'the beginning'}"
        return None

    def _find_place_problem(self, record: TransitionRecord, at: Position) -> str | None:
        before = self._before
        node = None if self.flow is None else self.flow.nodes.get(at.place)
        if node is None or node.kind != "agent":
            return "which is no place of an agent"
        role = node.verifier if is_verdict_due(node, before.tried, record.at) else node.agent
        if role != record.role:
            return f"which is the place of {role}"
        if before.waiting is not None and before.waiting.at == record.at:
            return None  # checked when it began to wait
        return self.find_flow_problem(at)


def list_bad_limits(limits: Mapping[str, Any]) -> Iterator[str]:
    """List which *limits* no version of uwf took."""
    for name, value in limits.items():
        problem = find_limit_problem(name, value, is_recorded=True)
        if value is not None and problem is not None:
            yield f"the limit {name} {problem}"


def check_amend(
    between: tuple[Standing, Standing], rules: tuple[Rules, Rules], signal: Node, *, is_branch: bool
) -> Iterator[str]:
    """List why a thread, standing *between*, cannot go on from *rules* to what *signal* makes."""
    before, after = between
    limits = signal.payload.get("limits", {})
    if is_branch and limits:
        yield f"amend gives limits to a branch: {', '.join(limits)}"
    yield from list_bad_limits(limits)
    workflow = after.state.workflow
    if workflow == before.state.workflow:
        return
    if is_branch:
        yield f"amend gives a branch another workflow than its split: {workflow}"
        return
    (old, new), is_append = rules, signal.payload["action"] == "append"
    other = find_other_change(old, new) if is_append else None
    lost = find_lost_place(old.flow, new.flow, before.state)
    roles = new.payload["roles"] if new.flow is None else ()
    gone = before.state.find_gone_role(roles) if old.flow is None else None
    if before.state.split is not None and not is_append:
        yield "the thread has split, and gets another workflow"
    elif other is not None:
        yield f"append does more than add to the workflow: it {other}"
    elif lost is not None:
        yield f"the thread stands at {lost}, and the new workflow differs on the way"
    elif gone is not None:
        yield f"the thread stands at {gone!r}, which is no role of the new workflow"


def find_poked(objects: ObjectStore, before: Oid) -> Standing | None:
    """Return the thread before the step that a poke after *before* takes back; None without one."""
    view = read_commit(objects, before)
    node = parse_thread_message(view.message).node
    while view.parents:
        record = parse_thread_message(view.message)
        view = read_commit(objects, view.parents[0])
        if record.event in {"poke", "join"} and record.node == node:
            return None
        if RULES[record.event].steps > 0 and record.node == node:
            state = parse_now(read_commit_file(objects, view, NOW_FILE)).present
            return Standing(parse_thread_message(view.message), state)
    return None
