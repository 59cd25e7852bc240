"""The state of a flow: what results and tries write into it."""

import json
import shlex
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from uwf_git.engine.diff import spelled
from uwf_git.errors import Refused
from uwf_git.model.event_folds import Verdict, merge_patch
from uwf_git.model.flow import Flow, FlowNode, NotAPosition, Position, fits, parse_position
from uwf_git.model.node import NotCanonical, canonical
from uwf_git.model.text import cut
from uwf_git.model.thread import Try
from uwf_git.surroundings import Lazy

if TYPE_CHECKING:
    from uwf_git.engine.javascript import evaluator as evaluator  # noqa: PLC0414 (others import it from here)
else:
    evaluator = Lazy("uwf_git.engine.javascript.evaluator")  # only flows evaluate it

# The state of a flow: what results write into it, and what may not be in it.
#
# Rules: FORMAT.md, "State of a flow".

ITERATION = "iteration"
"""Set by the engine when something reads the state, and never stored."""

MAX_STATE_BYTES = 1024 * 1024


def fold_result(
    state: Mapping[str, Any],
    *,
    meta: Any,
    content: str,
    output: str,
    patch: Mapping[str, Any] | None = None,
    is_verdict: bool = False,
) -> dict[str, Any]:
    """Return *state* after a result, of an agent or of a workflow that was run.

    In this order: the members of an object *meta* are set, the key *output* is set to the result's
    value, and *patch* (what the reply calls ``state``) is merged. The members of a verdict are not
    set: a verifier speaks about this try only.
    """
    members = meta if isinstance(meta, dict) and not is_verdict else {}
    folded = {**state, **members, output: result_value(meta, content)}
    return without_iteration(merge_patch(folded, dict(patch or {})))


Result = tuple[Any, str]
"""What a thread came to: a meta and a content; None and nothing if it took no step."""


def result_value(meta: Any, content: str) -> Any:
    """Return a result as a value: its *meta* unless empty, else *content*, parsed if JSON."""
    if meta is not None and meta != {}:
        return meta
    with suppress(ValueError, RecursionError, NotCanonical):
        return canonical(json.loads(content, object_pairs_hook=_without_duplicates))
    return content


def read_state(state: Mapping[str, Any], passes: int) -> dict[str, Any]:
    """Return *state* as conditions, templates and agents read it, with ``iteration``."""
    return {**state, ITERATION: passes}


def without_iteration(state: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key != ITERATION}


def find_patch_problem(patch: Any) -> str | None:
    if isinstance(patch, dict) and ITERATION in patch:
        return "iteration is counted by uwf and cannot be patched"
    return None


def find_depth_problem(state: Mapping[str, Any]) -> str | None:
    """Return why no ``now.json`` can hold *state*, as one that is too deep; None: it can."""
    try:
        canonical({"state": state})
    except NotCanonical as error:
        return error.message
    return None


def find_state_problem(state: Mapping[str, Any]) -> str | None:
    """Return why *state* is too large (1 MiB of compact JSON) or too deep, or None."""
    problem = find_depth_problem(state)
    if problem is not None:
        return f"the state cannot be stored: {problem}"
    size = _count_bytes(state)
    if size <= MAX_STATE_BYTES:
        return None
    return f"the state would have {size:,} bytes of JSON, and may have {MAX_STATE_BYTES:,}"


def _count_bytes(value: Mapping[str, Any]) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def list_largest(state: Mapping[str, Any]) -> list[str]:
    """List the keys of *state*, the largest first, without which it is small enough."""
    sizes = {key: _count_bytes({key: value}) for key, value in state.items()}
    left, found = sum(sizes.values()), []
    for key in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if left <= MAX_STATE_BYTES // 2:
            break
        found.append(key)
        left -= sizes[key]
    return found


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key is there twice")
    return fields


# Tries at a node whose work another agent verifies: whose turn it is, what its results change.
#
# Work, checks and verdict are one try. Rules: FORMAT.md, "Tries".


def find_open_try(
    flow: Flow, tried: Try | None, last: str | None, *, entry: Position | None = None
) -> tuple[str | None, Position | None]:
    """Return the place last finished, and the place of a try that is not over.

    *last* is the place last finished by the thread's own account. If the node is no longer
    verified, work that waits for its verdict is finished.
    """
    if tried is None:
        return last, None
    try:
        at = parse_position(tried.at)
    except NotAPosition:
        return last, None
    node = flow.nodes.get(at.place)
    if node is None or node.kind != "agent" or not fits(flow, at, entry=entry):
        return last, None
    if tried.is_verdict and node.verifier is None:
        return tried.at, None
    return last, at


def is_verdict_due(node: FlowNode, tried: Try | None, at: str | None) -> bool:
    """Check whether the next turn at *at*, the place of *node*, is its verifier's."""
    is_there = tried is not None and tried.at == at and tried.is_verdict
    return is_there and node.verifier is not None


def fold_turn(
    node: FlowNode,
    state: Mapping[str, Any],
    step: Mapping[str, Any],
    content: str,
    *,
    is_verdict: bool,
) -> dict[str, Any]:
    """Return *state* after the *step* (its payload), which said *content*, at *node*."""
    return fold_result(
        state,
        meta=step["meta"],
        content=content,
        output=node.verdict_output if is_verdict else node.output,
        patch=step.get("state"),
        is_verdict=is_verdict,
    )


def describe_rejection(role: str, meta: Any) -> str:
    """Return why the verifier *role* rejected the work: its issues and its suggestion."""
    reason = find_reason(meta)
    return f"{role} rejected it: {reason}" if reason else f"{role} rejected it"


def find_reason(meta: Any) -> str:
    fields = meta if isinstance(meta, dict) else {}
    told = filter(None, [*list_issues(fields), find_suggestion(fields)])
    return cut("; ".join(told), 2_000)


def list_issues(meta: Mapping[str, Any]) -> list[str]:
    """List the texts of a verdict's ``issues``: a list of texts, or one text."""
    issues = meta.get("issues")
    listed = issues if isinstance(issues, list | tuple) else [issues]
    return [each.strip() for each in listed if isinstance(each, str) and each.strip()]


def find_suggestion(meta: Mapping[str, Any]) -> str:
    """Return a verdict's ``suggestion``; "" if it has none."""
    suggestion = meta.get("suggestion")
    return suggestion.strip() if isinstance(suggestion, str) else ""


# Anybody may push a thread of many verdicts.
_LONGEST_WHEN = 500


def judge_again(flow: Flow, node: FlowNode, meta: Any) -> Verdict:
    """Return what a verdict with *meta* at *node* says, as cheaply as a commit may be checked.

    It is ``unknown`` if ``when`` is long, costs much, reads more than the meta, or is JSONata,
    whose limits are those of a process.
    """
    when = str(node.verified_by["when"])
    if flow.language != "javascript" or len(when) > _LONGEST_WHEN:
        return "unknown"
    is_accepted = evaluator.judge_cheaply(when, {"meta": meta}, share=200)
    if is_accepted is None:
        return "unknown"
    return "accepted" if is_accepted else "rejected"


# Join states: a three-way merge, by key, of what branches made of the state (FORMAT.md).

Policy = str
"""``error``, ``first``, ``last``, ``collect`` or ``append``."""

Policies = Policy | Mapping[str, Policy]
"""One for every key, or by top-level key, ``*`` for all others."""

_ALWAYS: Mapping[str, Policy] = {"error": "last", "outputs": "append", "errors": "append"}
_BRANCH = "parallel_"

MISSING: Any = object()
"""The value of a key that is not there."""


def list_entries(
    flow: Flow, at: Position, items: Sequence[Any]
) -> list[tuple[Position, dict[str, Any]]]:
    """List where the branches of a split at *at* begin, each with what its state has besides.

    *items* are those of a map.
    """
    node = flow.nodes[at.place]
    if node.kind == "parallel":
        return [(at.child(number), {}) for number in range(len(flow.children(node.place)))]
    return [
        (at.in_turn(number), {node.item: item, f"{node.item}Index": number})
        for number, item in enumerate(items)
    ]


def find_counting(policy: Mapping[str, Any], completed: Mapping[int, float]) -> list[int]:
    """Return the numbers of the branches whose state counts; *completed* has the time of each."""
    if policy.get("join") == "any" and completed:
        return [min(completed, key=lambda number: (completed[number], number))]
    return list(completed)


class Side(NamedTuple):
    number: int
    """Of its branch or item, from 0."""

    label: str
    state: Mapping[str, Any]
    """At its end."""


class Join(NamedTuple):
    base: Mapping[str, Any]
    """The state at the split."""

    ours: Mapping[str, Any]
    """The parent's state now."""

    sides: Sequence[Side]

    errors: Sequence[str] = ()
    """The last errors of the children that were given up, which go to ``errors``."""


class Conflict(NamedTuple):
    path: tuple[str, ...]
    base: Any
    values: tuple[tuple[Side, Any], ...]
    """What the sides made of it, ``MISSING`` where they removed it."""

    present: Any = MISSING
    """What is no list to append to; then there are no values."""

    def as_document(self) -> dict[str, Any]:
        """Return it as JSON; what is missing has no member."""
        branches = [
            {"number": side.number, "label": side.label, "value": value}
            for side, value in self.values
        ]
        return _without_missing(
            {
                "key": ".".join(self.path),
                "base": self.base,
                "branches": list(map(_without_missing, branches)),
                "patch": self.patch(),
            }
        )

    def patch(self) -> dict[str, Any]:
        """Return a merge patch of the parent that settles it: the first side's value that can."""
        is_new = self.base is MISSING
        if self.path in (("outputs",), ("errors",)):
            # No policy but appending: it needs a list, or nothing, that the parent has set.
            return {self.path[0]: [] if is_new else None}
        settled: Any = None
        for _side, value in self.values:
            is_removal = value is MISSING or value is None
            if is_removal and not is_new:
                break
            if not is_removal and (is_new or not _same(merge_patch(self.base, value), self.base)):
                settled = value
                break
        for key in reversed(self.path):
            settled = {key: settled}
        return dict(settled)


class Merged(NamedTuple):
    state: dict[str, Any]
    conflicts: tuple[Conflict, ...]
    """If there are any, *state* is of no use."""


def merge_conflict(thread: str, label: str, conflicts: Sequence[Conflict]) -> Refused:
    """Return the error for keys that branches set differently, and that no policy settles."""
    told = "; ".join(_describe(each) for each in conflicts)
    patch = build_patch(conflicts)
    ours = ((each.path[0], each.base) for each in conflicts if each.path[0] not in _ALWAYS)
    key, base = next(ours, ("", None))
    policy = f"; for new threads, write `merge: {{{key}: last}}` in the file" if key else ""
    if isinstance(base, list) and key:
        policy += ", or have each branch answer the whole list, its own items last, for `append`"
    return Refused(
        f"the branches of {label} disagree about {told}",
        code="merge-conflict",
        hint=f"`uwf thread patch {thread} {shlex.quote(_shown(patch, None))}` settles it, with "
        f"the value that you want{policy}",
        thread=thread,
        conflicts=[each.as_document() for each in conflicts],
    )


def build_patch(conflicts: Sequence[Conflict]) -> dict[str, Any]:
    """Return a merge patch of the state that settles *conflicts*."""
    return reduce(_united, (each.patch() for each in conflicts), {})


def join_branches(
    join: Join, node: FlowNode, count: int, read_result: Callable[[int], Result]
) -> Merged:
    """Join the *count* branches of *node*; *read_result* returns what one that counts came to."""
    if node.kind == "parallel":
        return merge_parallel(join, node)
    found = {side.number: read_result(side.number) for side in join.sides}
    if node.kind == "map":
        results = (found.get(number) for number in range(count))
        return merge_map(join, node, [each and result_value(*each) for each in results])
    for meta, content in found.values():
        return Merged(fold_result(join.ours, meta=meta, content=content, output=node.output), ())
    return merge_nothing(join)


def pick_result(
    node: FlowNode, begun: Mapping[str, Any], state: Mapping[str, Any], results: Iterable[Result]
) -> Result:
    """Return what a thread came to that ends with a join of *node*, a parallel or a map.

    It is what changed since the thread had *begun*, and what branches answered as it was.
    """
    said = {node.output} if node.kind == "map" else set()
    for meta, _content in results if node.kind == "parallel" else ():
        said |= meta.keys() if isinstance(meta, dict) else set()
    return pick_changes(begun, state, said), "{}"


def merge_parallel(join: Join, node: FlowNode) -> Merged:
    """Join the branches of the parallel *node*.

    ``parallel_<i>`` becomes what branch i changed, and a new ``output`` of a branch that is true in
    JavaScript is appended to ``outputs``.
    """
    merger = _Merger(join, node.fields.get("merge", {}))
    state = merger.merge(_keys(join))
    for side in join.sides:
        changed = state[f"{_BRANCH}{side.number}"] = pick_changes(join.base, side.state)
        output = changed.get("output")
        # To JavaScript empty lists and objects are true.
        if output or isinstance(output, dict | list):
            merger.append(state, "outputs", output)
    return merger.finish(without_iteration(state))


def pick_changes(
    base: Mapping[str, Any], state: Mapping[str, Any], said: Container[str | None] = ()
) -> dict[str, Any]:
    """Return the members of *state* that are not as in *base*, without what every join sets.

    Those in *said* were answered, and may be as they were.
    """
    return {
        key: value
        for key, value in state.items()
        if key not in _ALWAYS
        and not key.startswith(_BRANCH)
        and (key in said or not _same(value, base.get(key, MISSING)))
    }


def merge_map(join: Join, node: FlowNode, results: Sequence[Any]) -> Merged:
    """Join the items of the map *node*; *results* go to its ``output``, null for a failed item.

    Of the sides' states only the keys that ``merge`` names count (all, if it is a single policy or
    has ``*``), and never the item and its index.
    """
    policies: Policies = node.fields.get("merge", {})
    merger = _Merger(join, policies)
    is_whole = isinstance(policies, str) or "*" in policies
    own = (node.item, f"{node.item}Index")
    named = [key for key in _keys(join) if is_whole or key in policies]
    state = merger.merge([key for key in named if key not in own])
    state[node.output] = list(results)
    return merger.finish(without_iteration(state))


def merge_nothing(join: Join) -> Merged:
    """Join branches of which none counts: only their errors are told."""
    # A graph may have a key of its own that is called iteration.
    return _Merger(join, {}).finish(dict(join.ours))


class _Place(NamedTuple):
    """What there is at a path, and what the sides have there."""

    path: tuple[str, ...]
    base: Any
    ours: Any
    values: Sequence[tuple[Side, Any]]

    def inner(self, key: str) -> "_Place":
        values = [(side, value.get(key, MISSING)) for side, value in self.values]
        base, ours = self.base.get(key, MISSING), self.ours.get(key, MISSING)
        return _Place((*self.path, key), base, ours, values)


class _Merger:
    def __init__(self, join: Join, policies: Policies) -> None:
        self._join = join
        self._policies = {"*": policies} if isinstance(policies, str) else policies
        self._conflicts: list[Conflict] = []

    def merge(self, keys: Sequence[str]) -> dict[str, Any]:
        base, ours, sides, _errors = self._join
        whole = _Place((), base, ours, [(side, side.state) for side in sides])
        policies, usual = {**self._policies, **_ALWAYS}, self._policies.get("*", "error")
        merged = {key: self._value(whole.inner(key), policies.get(key, usual)) for key in keys}
        return _without_missing({**ours, **merged})

    def append(self, state: dict[str, Any], key: str, value: Any) -> None:
        present = state.get(key, [])
        if isinstance(present, list):
            state[key] = [*present, value]
        elif not any(each.path == (key,) for each in self._conflicts):
            base = self._join.base.get(key, MISSING)
            self._conflicts.append(Conflict((key,), base, (), present))

    def finish(self, state: dict[str, Any]) -> Merged:
        """Return the outcome: *state*, and in it the errors of what was given up."""
        for message in self._join.errors:
            self.append(state, "errors", message)
        return Merged(state, tuple(self._conflicts))

    def _value(self, at: _Place, policy: Policy) -> Any:
        changed = [(side, value) for side, value in at.values if not _same(value, at.base)]
        if not changed:
            return at.ours
        values = [value for _side, value in changed]
        if all(isinstance(each, dict) for each in (at.base, at.ours, *values)):
            keys = dict.fromkeys([*at.ours, *(key for value in values for key in value)])
            at = at._replace(values=changed)
            return _without_missing({key: self._value(at.inner(key), policy) for key in keys})
        if not _same(at.ours, at.base):
            return at.ours
        settled = _settle(policy, at.base, values)
        if settled is None:
            self._conflicts.append(Conflict(at.path, at.base, tuple(changed)))
            return at.ours
        return settled[0]


def _without_missing(merged: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in merged.items() if value is not MISSING}


def _settle(policy: Policy, base: Any, values: list[Any]) -> tuple[Any] | None:
    """Return the value that *policy* gives, in a tuple; None is a conflict."""
    present = [value for value in values if value is not MISSING]
    if policy == "collect" and present:
        return (present,)
    if policy == "append":
        rests = _rests([] if base is MISSING else base, values)
        if rests is not None:
            return (rests,)
    if all(_same(value, values[0]) for value in values):
        return (values[0],)
    if policy in ("first", "last"):
        return (values[0 if policy == "first" else -1],)
    return None


def _rests(base: Any, values: list[Any]) -> list[Any] | None:
    """Return *base* and what each of *values* has after it; None if one does not begin with it."""
    if not isinstance(base, list):
        return None
    united = list(base)
    for value in values:
        if not isinstance(value, list) or not _same(value[: len(base)], base):
            return None
        united += value[len(base) :]
    return united


def _keys(join: Join) -> list[str]:
    known = dict.fromkeys([*join.ours, *(key for side in join.sides for key in side.state)])
    return [key for key in known if not key.startswith(_BRANCH)]


def _same(one: Any, other: Any) -> bool:
    """Check that two values are the same JSON; in Python 1 equals true."""
    return one is other or (one == other and spelled(one) == spelled(other))


def _united(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return one merge patch of two about different keys."""
    united = dict(one)
    for key, value in other.items():
        both = isinstance(value, dict) and isinstance(united.get(key), dict)
        united[key] = _united(united[key], value) if both else value
    return united


def _describe(conflict: Conflict) -> str:
    key = ".".join(conflict.path)
    if not conflict.values:
        return f"{key}: {_shown(conflict.present)}, which is no list to append to"
    sides = (f"{side.label} ({side.number}) {_shown(value)}" for side, value in conflict.values)
    return f"{key}: {_shown(conflict.base)} at the split, {', '.join(sides)}"


def _shown(value: Any, longest: int | None = 120) -> str:
    if value is MISSING:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if longest is None else cut(text, longest)
