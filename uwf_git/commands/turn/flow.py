"""What a flow and the settings say of a turn: where it goes, what it is given, tries and limits."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

from uwf_git.commands.family import count_visits_before, list_branches
from uwf_git.commands.split import Asked, Container, find_in_flow, read_entry, read_flow
from uwf_git.engine.flow_move import (
    FlowWords,
    Move,
    count_passes,
    find_given_up,
    name_items,
    next_move,
)
from uwf_git.engine.flow_state import find_open_try, fold_turn, is_verdict_due, read_state
from uwf_git.engine.masking import MASK, find_secrets, is_secret_name, mask
from uwf_git.engine.moderator import expression
from uwf_git.errors import Refused
from uwf_git.model.event_folds import Verdict
from uwf_git.model.flow import Flow, FlowNode, Position, parse_position
from uwf_git.model.limits import LIMITS, Spent, find_limit_problem, find_spent, find_time_left_s
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.thread import ThreadState, add_usage
from uwf_git.model.workflow import Workflow
from uwf_git.store.git.config import GitConfig, parse_size
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import (
    Snapshot,
    StepChain,
    get_role,
    get_workflow,
    read_root,
    read_snapshot,
)
from uwf_git.surroundings import load

# Flows at a turn: where a thread goes next, what its agent is given, what its result changes.
#
# Rules: FORMAT.md, "Positions" and "State of flows".

_JSONATA = "jsonata"
_OF_EXPRESSIONS = frozenset(
    {
        "condition-failed",
        "expression-failed",
        "fence-hit",
        "flow-goes-round",
        "flow-value",
        "loop-exhausted",
    }
)


class FlowPlace(NamedTuple):
    flow: Flow
    at: Position
    entry: Position | None
    """Where the thread begins, if it is a branch."""

    snapshot: Snapshot

    present: ThreadState

    @property
    def node(self) -> FlowNode:
        return self.flow.nodes[self.at.place]

    @property
    def is_verdict(self) -> bool:
        return is_verdict_due(self.node, self.present.tried, str(self.at))

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.node.list_inputs(is_verdict=self.is_verdict)

    @property
    def input_files(self) -> tuple[str, ...]:
        asked = self.node.verified_by if self.is_verdict else self.node.fields
        return tuple(asked.get("inputFiles", ()))

    @property
    def role(self) -> str:
        return self.node.find_role(is_verdict=self.is_verdict)

    def fold(
        self, state: Mapping[str, Any], step: Mapping[str, Any], content: str
    ) -> dict[str, Any]:
        """Return the state after the *step* (its payload) of this agent, which said *content*."""
        return fold_turn(self.node, state, step, content, is_verdict=self.is_verdict)

    def judge(self, meta: Any) -> Verdict | None:
        """Return what a step with *meta* means for the try; None if nobody verifies the work."""
        if self.node.verifier is None:
            return None
        if not self.is_verdict:
            return "due"
        is_accepted = self.evaluate(lambda words: words.accepts(self.node, meta, *self._here))
        return "accepted" if is_accepted else "rejected"

    @property
    def retries(self) -> int | None:
        """How often a failed try is repeated here; None: the agent's settings decide."""
        found = self._find("retries", lambda words, node: words.count_retries(node, *self._here))
        policies = (node.fields.get("onError") for node in self.flow.list_around(self.at.place))
        if found is None and next(filter(None, policies), None) == "retry":
            return 1
        return None if found is None else int(found)

    @property
    def timeout_s(self) -> float | None:
        """How long a try may take, in seconds; None: the agent's settings decide."""

        def read(words: FlowWords, node: FlowNode) -> float | None:
            return words.find_timeout_ms(node, node.fields.get("timeout"), *self._here)

        found = self.node.verified_by.get("timeout") if self.is_verdict else None
        if isinstance(found, str):
            own = found
            found = self.evaluate(lambda words: words.find_timeout_ms(self.node, own, *self._here))
        found = self._find("timeout", read) if found is None else found
        return None if found is None else float(found) / 1000

    @property
    def _here(self) -> tuple[int, Position]:
        return count_passes(self.flow, self.at), self.at

    def _find(self, field: str, read: Callable[..., Any]) -> Any:
        """Return *field* of the nearest node around that has it; null counts as absent."""
        for node in self.flow.list_around(self.at.place):
            found = node.fields.get(field)
            if isinstance(found, str):
                found = self.evaluate(partial(read, node=node))
            if found is not None:
                return found
        return None

    def evaluate(self, read: Callable[[FlowWords], Any]) -> Any:
        """Return what *read* makes of the words of the flow, within the limits of its language."""
        words = build_words(self.snapshot, self.present, self.flow, self.entry)
        return evaluate_within_limits(self.snapshot, self.flow, lambda: read(words))

    def find_given_up(self) -> str | None:
        """Return the place that is given up if the agent fails for good; None: the thread fails."""
        place = find_given_up(self.flow, self.at, entry=self.entry)
        return None if place is None else str(place)


def find_turn_place(snapshot: Snapshot, at: str | None) -> FlowPlace | None:
    """Return the agent at the place *at*; None in a graph, or if the flow has no agent there."""
    found = find_in_flow(snapshot, at)
    if found is None:
        return None
    place = FlowPlace(*found, read_entry(snapshot), snapshot, snapshot.get_present())
    return place if place.node.kind == "agent" else None


def decide_flow(snapshot: Snapshot, present: ThreadState, flow: Flow) -> Move:
    """Return the next move of a thread that runs *flow*; an agent's input can be filled."""
    entry = read_entry(snapshot)
    last, tried = find_open_try(flow, present.tried, present.at, entry=entry)
    at = None if last is None else parse_position(last)
    words = build_words(snapshot, present, flow, entry)

    def move() -> Move:
        if tried is None:
            found = next_move(flow, at, words, entry=entry)
        else:
            found = Move("agent", tried, flow.nodes[tried.place])
        if found.kind == "agent" and found.at is not None:
            # Before anybody is paid for a turn that cannot be begun.
            place = FlowPlace(flow, found.at, entry, snapshot, present)
            for template in place.inputs:
                _fill(words, place, template)
        return found

    told = evaluate_within_limits(snapshot, flow, lambda: str(move().at or ""))
    if not told:
        return Move("end", None, None)
    position = parse_position(told)
    node = flow.nodes[position.place]
    return Move("agent" if node.kind == "agent" else "split", position, node)


def evaluate_within_limits(snapshot: Snapshot, flow: Flow, work: Callable[[], Any]) -> Any:
    """Return the JSON that *work* returns; in a limited fork if the language has no limits.

    The error of an expression tells what changes its answer.
    """
    try:
        if flow.language != _JSONATA:
            return work()
        # Before the fork: in it an import counts against the limits, and may wait for a thread.
        load(expression)
        return run_in_fork(work)
    except Refused as error:
        if error.code not in _OF_EXPRESSIONS:
            raise
        patch = f"`uwf thread patch {snapshot.record.thread} JSON` changes the state that it reads"
        error.hint = "; ".join(filter(None, (error.hint, patch, advise_change(snapshot))))
        raise


def advise_change(snapshot: Snapshot) -> str:
    """Return how a thread goes on with a corrected workflow: a branch runs what its split said."""
    thread, trunk = snapshot.record.thread, snapshot.get_trunk()
    if trunk is None:
        return f"`uwf thread amend {thread} --workflow FILE` continues with the corrected file"
    again = f"`uwf thread poke {thread}` takes its step again; " if snapshot.record.depth else ""
    # Around a branch of a branch there are more threads, of which only refs know the outermost.
    outermost = trunk if snapshot.get_nesting() == 1 else "OUTERMOST"
    return (
        f"{again}`uwf thread fork {outermost}` begins a thread before the split; put the corrected "
        "workflow and what uses it, then `uwf thread amend FORK --workflow FILE` continues with "
        "the file of the outermost thread"
    )


def run_in_fork(work: Callable[[], Any], *, what: str = "the decision") -> Any:
    """Return what *work* returns, in a limited fork. Import before what *work* needs."""
    from uwf_git.agents.limited_fork import run_limited  # noqa: PLC0415 (few turns need a fork)

    return run_limited(work, what=what)


def build_words(
    snapshot: Snapshot, present: ThreadState, flow: Flow, entry: Position | None
) -> FlowWords:
    return FlowWords(
        flow.language,
        state=present.state,
        prompt=snapshot.get_start().payload["prompt"],
        depth=present.depth,
        items=name_items(flow, present.state, entry),
        flow=flow,
    )


def fill_input(snapshot: Snapshot, present: ThreadState, place: FlowPlace) -> Any:
    return fill_template(snapshot, present, place, place.inputs[0])


def fill_template(snapshot: Snapshot, present: ThreadState, place: FlowPlace, template: Any) -> Any:
    """Return *template* filled as an input at *place* is; None stays None."""
    if template is None:
        return None
    words = build_words(snapshot, present, place.flow, place.entry)
    return evaluate_within_limits(snapshot, place.flow, lambda: _fill(words, place, template))


def _fill(words: FlowWords, place: FlowPlace, template: Any) -> Any:
    """Return *template* filled: here alone, for who decides and for who is told."""
    return words.fill(template, count_passes(place.flow, place.at), place.at)


def read_state_at(snapshot: Snapshot, present: ThreadState, place: FlowPlace) -> dict[str, Any]:
    """Return the state as the agent at *place* reads it: with ``iteration`` and items of loops."""
    passes = count_passes(place.flow, place.at)
    if not any(node.has_items for node in place.flow.nodes.values()):
        return read_state(present.state, passes)
    words = build_words(snapshot, present, place.flow, place.entry)
    state = evaluate_within_limits(snapshot, place.flow, lambda: dict(words.inside(place.at).state))
    return read_state(state, passes)


def ask_container(snapshot: Snapshot, present: ThreadState, container: Container) -> Asked:
    flow, node = container.flow, container.node
    if flow is None or node is None or container.kind == "parallel":
        return Asked(prompt=str(snapshot.get_start().payload["prompt"]))
    words = build_words(snapshot, present, flow, read_entry(snapshot))
    at = parse_position(container.at)
    passes = count_passes(flow, at)
    if container.kind == "map":
        items = evaluate_within_limits(snapshot, flow, lambda: words.list_items(node, passes, at))
        return Asked(items)
    asked = evaluate_within_limits(snapshot, flow, lambda: words.ask_workflow(node, passes, at))
    prompt, given = asked
    used = get_workflow(snapshot, container.used)
    state = None if given is None else {**(used.initial_state or {}), **given}
    return Asked(prompt=prompt, state=state)


# Retry rules of an agent: its own settings, else git config, else none.
#
# Source: seed 004, "retries": the wait grows by one unit with each attempt.

RETRIES = "uwf.retries"
CLAIM = "uwf.claim"
"""Each run of a thread claims it at its hub, as `--claim` does."""

_LONGEST_WAIT_S = 3600.0
_MOST_DIGITS = 9


class RetryRules(NamedTuple):
    """How often and how soon a failed agent is tried again."""

    retries: int
    """The attempts after the first."""

    backoff_s: float
    """The wait before the first retry; the wait before retry n is n times as long."""

    def wait_s(self, failures: int) -> float:
        """Return how long to wait after that many failures."""
        return min(_LONGEST_WAIT_S, self.backoff_s * failures)


def read_retry(
    config: GitConfig, agent: Mapping[str, Any], place: FlowPlace | None = None
) -> RetryRules:
    retries = None if place is None else place.retries
    retries = agent.get("retries") if retries is None else retries
    backoff = agent.get("backoff")
    return RetryRules(
        int(_read(config, RETRIES, 0)) if retries is None else retries,
        _read(config, "uwf.backoff", 1.0) if backoff is None else backoff,
    )


def find_work_retries(config: GitConfig, place: FlowPlace) -> int:
    """Return how often work that was rejected at *place* is done again: as work that failed is."""
    bound = place.present.binding.get(place.node.agent)
    agent = {} if bound is None else place.snapshot.get_node(bound).payload
    return read_retry(config, agent, place).retries


def _read(config: GitConfig, name: str, default: float) -> float:
    text = config.get(name)
    if not text:
        return default
    plain = text if name == RETRIES else text.replace(".", "", 1)
    if not (plain.isascii() and plain.isdecimal() and len(plain) <= _MOST_DIGITS):
        kind = "a whole number" if name == RETRIES else "a number"
        raise Refused(
            f"{name} is {text[:40]!r}, not {kind}",
            code="bad-retry-setting",
            hint=f"set it anew: `uwf config set {name} 2`",
            setting=name,
        )
    return float(text)


# What a step keeps besides its result: the end of its agent's log, and named variables.
#
# A value that may be a secret is masked, and a variable with the name of a secret always is.
# Source: seed 000, AgentExecContext: an environment can be recorded for an audit, not by default.

KEEP_LOGS = "uwf.keepLogs"
RECORD_ENV = "uwf.recordEnv"

DEFAULT_LOG_BYTES = 64 * 1024


class KeepRules(NamedTuple):
    log_bytes: int = DEFAULT_LOG_BYTES
    """The most bytes of the agent's log; 0 keeps none."""

    env: tuple[str, ...] = ()
    """The names of the variables; ``*`` in one stands for anything."""


def read_keep_rules(config: GitConfig) -> KeepRules:
    text = config.get(KEEP_LOGS) or ""
    size = parse_size(text) if text else DEFAULT_LOG_BYTES
    if size is None:
        raise Refused(
            f"{KEEP_LOGS} is {text[:40]!r}, not a size such as 64k",
            code="bad-keep-setting",
            hint=f"set it anew: `uwf config set {KEEP_LOGS} 64k`; 0 keeps no logs",
            setting=KEEP_LOGS,
        )
    names = (config.get(RECORD_ENV) or "").replace(",", " ").split()
    return KeepRules(size, tuple(names))


def record_env(
    environment: Mapping[str, str], names: tuple[str, ...], keys: Collection[str] = ()
) -> dict[str, str]:
    """Return the variables of *environment* that *names* name, with secrets, and *keys*, masked."""
    secrets = find_secrets(environment, keys)
    return {
        name: MASK if value and (name in keys or is_secret_name(name)) else mask(value, secrets)
        for name, value in sorted(environment.items())
        if any(fnmatchcase(name, pattern) for pattern in names)
    }


# Limits of a thread: choose them at the start, and refuse a step beyond them.
#
# The order: option, workflow, none. How they are counted: model/limits.py.


class LimitReached(Refused):
    code = "limit-reached"

    def __init__(self, thread: ThreadId, spent: Spent) -> None:
        super().__init__(
            f"thread {thread} is at its limit: {spent.told}",
            hint=f"give it more with `uwf thread amend {thread} {_option(spent.name)}`, or end it "
            f"with `uwf thread kill {thread}`",
            thread=thread,
            limit=spent.name,
            used=spent.used,
            of=spent.limit,
        )


def _option(name: str) -> str:
    return f"{LIMITS[name].option} {LIMITS[name].metavar}"


def check_asked(asked: Mapping[str, Any], *, is_recorded: bool = False) -> None:
    """Check names and values of limits; None removes one."""
    for name, value in asked.items():
        takes_away = value is None and name in LIMITS
        problem = find_limit_problem(name, value, is_recorded=is_recorded)
        if not takes_away and problem is not None:
            raise Refused(
                f"{name[:60]} {problem}",
                code="bad-limit",
                hint=f"limits are {', '.join(LIMITS)}",
                limit=name,
            )


def choose_limits(asked: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of a new thread: as *asked*, else as its workflow's *config* says."""
    merged = {**{name: config[name] for name in LIMITS if name in config}, **asked}
    check_asked(asked)
    check_asked(merged, is_recorded=True)
    # In a fixed order, so that equal threads begin with equal nodes.
    return {name: merged[name] for name in LIMITS if merged.get(name) is not None}


def check_limits(thread: ThreadId, present: ThreadState) -> None:
    """Raise ``LimitReached`` if the thread may take no further step."""
    if (spent := find_spent(present)) is not None:
        raise LimitReached(thread, spent)


def tell_cut_short(
    limited: "Spending", *, who: str, own_s: float | None, spent_ms: int = 0
) -> tuple[str, str] | None:
    """Return cause and hint if the thread's limit, not *own_s*, cut *who* short; else None."""
    left_s = find_time_left_s(limited.present, spent_ms=spent_ms)
    if left_s is None or (own_s is not None and own_s <= left_s):
        return None
    cause = f"{who} took longer than the {left_s:.1f} s of execution time that the thread had left"
    more = f"`uwf thread amend {limited.thread} {_option('maxExecutionTime')}` gives it more"
    return f"{cause}, and was stopped", f"nothing was lost: {more}"


# What a thread and its branches spent: the limits of a thread are for all of them together.


class Spending(NamedTuple):
    thread: ThreadId
    """Whose limits they are: the thread's own, or its trunk's."""

    present: ThreadState
    """That thread's state, with what its branches spent; ``depth`` counts all steps."""


def read_spending(store: Store, snapshot: Snapshot, present: ThreadState) -> Spending:
    """Return the limits of the thread at *snapshot*, and what was spent of them here."""
    root = read_root(store, snapshot)
    at_root = present if root is snapshot else root.get_present()
    spent = _count_joined(at_root)
    # Without limits nobody asks what the branches spent.
    if at_root.limits and at_root.split is not None:
        spent = _add_open_branches(store, root, spent)
    return Spending(root.record.thread, spent)


def add_branches(store: Store, at: Snapshot, present: ThreadState) -> ThreadState:
    """Return *present*, the thread's state at *at*, with what its branches spent until now.

    Its ``depth`` counts all steps, those of joined branches as well; of a branch since it began.
    """
    spent = _count_joined(present)
    if spent.depth != present.depth:
        spent = spent._replace(depth=spent.depth - count_visits_before(store, at))
    return spent if present.split is None else _add_open_branches(store, at, spent)


def _count_joined(present: ThreadState) -> ThreadState:
    return present._replace(depth=sum(present.visits.values()) or present.depth)


def find_limit(store: Store, snapshot: Snapshot) -> LimitReached | None:
    spending = read_spending(store, snapshot, snapshot.get_present())
    spent = find_spent(spending.present)
    return None if spent is None else LimitReached(spending.thread, spent)


def find_steps_left(store: Store, thread: ThreadId) -> int | None:
    """Return how many steps *thread* and its branches may still begin; None: no limit."""
    snapshot = read_snapshot(store, get_head(store, thread).commit)
    present = read_spending(store, snapshot, snapshot.get_present()).present
    most = present.limits.get("maxSteps")
    return None if most is None else most - present.depth


def _add_open_branches(store: Store, at: Snapshot, spent: ThreadState) -> ThreadState:
    inherited = sum(at.get_present().visits.values())
    for branch in list_branches(store, at):
        if branch.head is None:
            continue
        inner = read_snapshot(store, branch.head.commit)
        present = inner.get_present()
        known = inherited if "entry" in inner.get_start().payload else 0
        usage: dict[str, Any] = add_usage(dict(spent.usage), dict(present.usage))
        spent = spent._replace(
            depth=spent.depth + sum(present.visits.values()) - known,
            usage=usage,
            execution_ms=spent.execution_ms + present.execution_ms,
        )
        if present.split is not None:
            spent = _add_open_branches(store, inner, spent)
    return spent


# Which steps are a role's own: a workflow that is used may have a role of the same name.


def count_own(snapshot: Snapshot, present: ThreadState) -> Mapping[str, int]:
    """Return how many steps each role of a table took: ``visits`` without those of used workflows.

    Only where both have a role of one name, the thread's steps are read. Of a flow return
    ``visits``: there no condition reads the number.
    """
    workflow = get_workflow(snapshot, present.workflow)
    # A table whose steps are all its own has joined no other: that spares the look at its roles.
    if workflow.flow is not None or sum(present.visits.values()) == present.depth:
        return present.visits
    shared = workflow.roles.keys() & present.visits.keys()
    if shared.isdisjoint(_list_used_roles(snapshot, workflow)):
        return present.visits
    chain = StepChain(snapshot)
    return Counter(str(chain.get(n).payload["role"]) for n in reversed(range(len(chain))))


def _list_used_roles(snapshot: Snapshot, workflow: Workflow) -> set[str]:
    """List the roles of the workflows that *workflow* uses, and of those that these use."""
    roles, seen, pending = set[str](), set[NodeHash](), [workflow]
    while pending:
        user = pending.pop()
        flow = read_flow(snapshot, user)
        parts = map(partial(get_role, snapshot), user.roles.values())
        used = {each.workflow for each in (parts if flow is None else flow.nodes.values())}
        for name in used - seen:
            if name is not None:
                seen.add(name)
                pending.append(get_workflow(snapshot, name))
                roles.update(pending[-1].roles)
    return roles
