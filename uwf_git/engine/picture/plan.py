"""What a picture shows, before anything has a place in it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from uwf_git.engine.masking import mask_keys
from uwf_git.model.flow import DEFAULT_BOUND, HOLDING, ROOT, Flow, FlowNode, Kind, Position
from uwf_git.model.text import one_line
from uwf_git.model.workflow import END, START, Graph, Transition

# In which order the roles of a graph stand below one another.


def order_roles(graph: Graph, written: Sequence[str]) -> list[str]:
    """Return the roles as *written*, unless a depth-first order has fewer ways back."""
    found = [role for role in _depth_first(graph) if role in set(written)]
    if _count_back(graph, found) < _count_back(graph, written):
        return found
    return list(written)


def _depth_first(graph: Graph) -> list[str]:
    """Return what the start reaches, each after all from which it is reached without a way back."""
    finished: list[str] = []
    seen = {START}
    stack = [(START, iter(graph.get(START, ())))]
    while stack:
        name, ways = stack[-1]
        following = next((way.to for way in ways if way.to not in seen), None)
        if following is None:
            finished.append(name)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(graph.get(following, ()))))
    return finished[::-1]


def _count_back(graph: Graph, order: Sequence[str]) -> int:
    numbers = {role: number for number, role in enumerate(order)}
    return sum(
        numbers[way.to] <= number
        for role, number in numbers.items()
        for way in graph.get(role, ())
        if way.to in numbers
    )


# What a picture shows, before anything has a place in it. All texts in a plan are clean.

MarkState = Literal["done", "now", "waits", "failed", "paused", "stopped"]


class Mark(NamedTuple):
    state: MarkState
    badge: str
    """A sign and a few words."""

    words: str
    """The same as part of a sentence, after the place's name."""


_BY_WEIGHT: tuple[MarkState, ...] = ("failed", "stopped", "waits", "now", "paused", "done")


def merge_marks(marks: Sequence[Mark]) -> Mark:
    """Return one mark for several branches: how many are in which state."""
    if len(marks) == 1:
        return marks[0]
    states = [state for state in _BY_WEIGHT if any(mark.state == state for mark in marks)]
    groups = [[mark for mark in marks if mark.state == state] for state in states]
    badge = " · ".join(f"{group[0].badge[0]} {len(group)}" for group in groups)
    words = "; ".join(f"{len(group)} of its branches: {group[0].words}" for group in groups)
    return Mark(states[0], badge, words)


Marks: TypeAlias = Mapping[str, Mark]
"""Marks by place: the name of a role (``$START`` and ``$END`` too), or the place in a flow."""


class ThreadMarks(NamedTuple):
    headline: str

    marks: Marks


class Subject(NamedTuple):
    """What is to be drawn; its texts may be anything."""

    name: str
    description: str
    roles: Mapping[str, str]

    moves: Graph | Flow
    thread: ThreadMarks | None = None


class Station(NamedTuple):
    name: str
    note: str = ""
    mark: Mark | None = None
    is_end: bool = False
    is_reached: bool = True


class Way(NamedTuple):
    source: int
    target: int
    labels: tuple[str, ...]
    """Numbered in the order in which they are asked; empty if it is the only way, and always."""


class GraphPlan(NamedTuple):
    """A graph: stations in the order in which they are drawn, and ways by their numbers."""

    title: str
    about: str
    stations: tuple[Station, ...]
    ways: tuple[Way, ...]


class Branch(NamedTuple):
    """Blocks that run one after another."""

    label: str
    blocks: tuple["Block", ...]


class Block(NamedTuple):
    place: str
    kind: Kind
    name: str
    """Of an agent or a workflow; for a container its heading."""

    note: str = ""
    """What stands below the name, or the condition below the heading."""

    mark: Mark | None = None
    branches: tuple[Branch, ...] = ()
    """One for each that may run beside the others; an empty one is the way past them."""


class FlowPlan(NamedTuple):
    """A flow: the blocks at the top."""

    title: str
    about: str
    blocks: tuple[Block, ...]
    marks: tuple[Mark | None, Mark | None]
    """Of the start and of the end."""


Plan: TypeAlias = GraphPlan | FlowPlan


def clean(text: str) -> str:
    """Return *text* as a picture may show it: one line, without controls, keys masked."""
    return one_line(mask_keys(text))


def clean_mark(mark: Mark | None) -> Mark | None:
    return mark and Mark(mark.state, clean(mark.badge), clean(mark.words))


def name_subject(subject: Subject) -> str:
    name = clean(subject.name)
    return name if subject.thread is None else f"{name}: {clean(subject.thread.headline)}"


# The plan of a graph: in which order its roles are drawn, and which transitions are one way.

END_NAMES: Mapping[str, str] = {START: "start", END: "end"}


def plan_graph(subject: Subject, graph: Graph) -> GraphPlan:
    marks: Marks = {} if subject.thread is None else subject.thread.marks
    reached = set(_depth_first(graph))
    targets = [way.to for ways in graph.values() for way in ways]
    written = [
        role
        for role in dict.fromkeys([*graph, *targets, *sorted(subject.roles)])
        if role not in END_NAMES
    ]
    order = order_roles(graph, [role for role in written if role in reached])
    order += [role for role in written if role not in reached]
    names = [START, *order, END]
    stations = tuple(
        Station(
            name=END_NAMES.get(name) or clean(name),
            note=clean(subject.roles.get(name, "")),
            mark=clean_mark(marks.get(name)),
            is_end=name in END_NAMES,
            is_reached=name in reached or name == END,
        )
        for name in names
    )
    numbers = {name: number for number, name in enumerate(names)}
    ways = tuple(way for name in names for way in _ways(graph.get(name, ()), name, numbers))
    return GraphPlan(name_subject(subject), clean(subject.description), stations, ways)


def _ways(transitions: Sequence[Transition], source: str, numbers: Mapping[str, int]) -> list[Way]:
    """Return the ways from *source*: one for each target, in the order of their first labels."""
    labels: dict[str, list[str]] = {}
    alone = len(transitions) == 1
    for number, each in enumerate(transitions, 1):
        told = labels.setdefault(each.to, [])
        if each.condition is not None:
            told.append(f"{number}. {clean(each.condition)}")
        elif not alone:
            told.append(f"{number}. otherwise")
    return [Way(numbers[source], numbers[target], tuple(told)) for target, told in labels.items()]


# The plan of a flow: its containers as blocks in blocks.

MOST_ALIKE = 12
_WORDS: Mapping[str, str] = {"sequential": "sequence", "conditional": "if"}


def plan_flow(subject: Subject, flow: Flow, *, is_whole: bool = False) -> FlowPlan:
    """Return the plan of *flow*; unless *is_whole*, over twelve like branches are a block."""
    marks: Marks = {} if subject.thread is None else subject.thread.marks
    most_alike = len(flow.nodes) if is_whole else MOST_ALIKE
    planner = _Planner(flow, marks, subject.roles, most_alike)
    return FlowPlan(
        name_subject(subject),
        clean(subject.description),
        tuple(planner.plan(place) for place in flow.list_from(ROOT)),
        (planner.mark(START), planner.mark(END)),
    )


class _Planner:
    def __init__(self, flow: Flow, marks: Marks, roles: Mapping[str, str], most_alike: int) -> None:
        self._flow = flow
        self._marks = marks
        self._roles = roles
        self._most_alike = most_alike

    def mark(self, place: str) -> Mark | None:
        return clean_mark(self._marks.get(place))

    def plan(self, place: str) -> Block:
        node = self._flow.nodes[place]
        if node.kind in HOLDING:
            name, note = _heading(node), _condition(node)
        else:
            name, note = node.label, self._note(node)
        return Block(
            place, node.kind, clean(name), clean(note), self.mark(place), self._branches(node)
        )

    def _note(self, node: FlowNode) -> str:
        """Return the note of an agent or a workflow: role and output, or else a description."""
        parts = []
        if node.kind == "workflow":
            parts.append(f"workflow {node.fields['use']}")
        elif node.agent != node.label:
            parts.append(node.agent)
        if "output" in node.fields:
            parts.append(f"→ {node.output}")
        if node.verifier is not None:
            parts.append(f"verified by {node.verifier}")
        role = self._roles.get(node.agent, "") if node.kind == "agent" else ""
        described = node.fields.get("description") or role
        return " · ".join([*parts, *_rules(node)]) or str(described)

    def _branches(self, node: FlowNode) -> tuple[Branch, ...]:
        if node.kind not in HOLDING:
            return ()
        if node.kind == "parallel":
            return tuple(Branch("", (block,)) for block in self._beside(node))
        blocks = tuple(map(self.plan, self._flow.children(node.place)))
        if node.kind != "conditional":
            return (Branch("", blocks),)
        otherwise = tuple(map(self.plan, self._flow.children(node.place, of_else=True)))
        return (Branch("then", blocks), Branch("else", otherwise))

    def _beside(self, node: FlowNode) -> Iterator[Block]:
        """Yield the blocks of branches; many of one player are one block."""
        places = self._flow.children(node.place)
        by_player: dict[str, list[str]] = {}
        for place in places:
            by_player.setdefault(self._player(place), []).append(place)
        for place in places:
            player = self._player(place)
            alike = by_player[player]
            if len(alike) <= self._most_alike:
                yield self.plan(place)
            elif place == alike[0]:
                blocks = [self.plan(each) for each in alike]
                marks = [block.mark for block in blocks if block.mark is not None]
                yield blocks[0]._replace(
                    name=clean(f"{len(blocks)} \N{MULTIPLICATION SIGN} {player}"),
                    note=f"{blocks[0].name} … {blocks[-1].name}",
                    mark=merge_marks(marks) if marks else None,
                )

    def _player(self, place: str) -> str:
        """Return the role or the workflow that plays at *place*; of a container the place."""
        node = self._flow.nodes[place]
        if node.kind == "agent":
            return node.agent
        return str(node.fields["use"]) if node.kind == "workflow" else place


def _heading(node: FlowNode) -> str:
    word = _WORDS.get(node.kind, node.kind)
    named = node.fields.get("id") or node.fields.get("name")
    parts = [word if named is None else f"{word} “{named}”"]
    if node.kind == "loop" and not node.has_items:
        parts.append(f"at most {node.fields.get('maxIterations', DEFAULT_BOUND)}")
    return " · ".join([*parts, *_rules(node)])


def _condition(node: FlowNode) -> str:
    fields = node.fields
    told = [f"for each {node.item} of {fields['over']}"] if "over" in fields else []
    if "condition" in fields and (node.kind == "loop" or not told):
        told.append(f"{'while ' if node.kind == 'loop' else ''}{fields['condition']}")
    return ", ".join(told)


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


# The marks of a thread: where it is, how often each role ran, what failed, who waits.

_STANDS: Mapping[str, tuple[MarkState, str, str]] = {
    "waiting": ("waits", "? person", "waits for a person"),
    "failed": ("failed", "✗ failed", "failed"),
    "paused": ("paused", "‖ paused", "is next, and the thread is paused"),
    "split": ("now", "▶ branches", "has split into branches"),
    "killed": ("stopped", "✗ killed", "was here when the thread was killed"),
    "completed": ("done", "✓", "is the last"),
}


class Progress(NamedTuple):
    status: str
    visits: Mapping[str, int]
    """Role → number of its steps."""

    turn: str | None = None
    """The role at work, or whose turn it is, or ``$END``; None: ended, or undecidable."""

    attempts: int = 0
    """Failed tries since the newest step."""

    is_at_work: bool = False
    waits_for_limit: bool = False
    """It waits for the end of a limit, not for a person."""

    last: str = START

    tried: str = ""
    """Of a node that is verified: which try it is, and whose turn, after the first work."""

    steps_at: Mapping[str, int] = {}
    """Place → number of its steps, for the roles of ``list_shared_roles``."""

    given_up: Mapping[str, str] = {}
    """Place where a branch began that the thread went on without → its error."""


def mark_roles(progress: Progress) -> dict[str, Mark]:
    marks = {
        role: Mark("done", f"✓ {number}", f"ran {_times(number)}")
        for role, number in progress.visits.items()
        if number
    }
    is_known = progress.turn is not None or progress.status == "ready"
    here = progress.turn if is_known else progress.last
    if progress.status == "completed":
        marks[END] = Mark("done", "✓ completed", "the thread is completed")
    elif here is not None:
        marks[here] = _mark_here(progress, marks.get(here))
    return marks


def mark_places(
    flow: Flow, progress: Progress, position: Position | None, *, within: str | None = None
) -> dict[str, Mark]:
    """Return the marks of a flow's places; *position* is where the thread stands.

    A branch marks only places *within* the place where it begins. The loops around the position
    tell their pass.
    """
    shared = list_shared_roles(flow)
    marks = {}
    for place, node in flow.nodes.items():
        if node.kind == "agent":
            # The steps of a verifier are no steps of the work.
            role = node.agent
            number = progress.steps_at.get(place) if role in shared else progress.visits.get(role)
            if number:
                marks[place] = Mark("done", f"✓ {number}", f"ran {_times(number)}")
    for place, error in progress.given_up.items():
        marks[place] = Mark("stopped", "✗ given up", f"was given up: {error}")
    if progress.status == "completed":
        marks[END] = Mark("done", "✓ completed", "the thread is completed")
    elif progress.turn == END:
        marks[END] = _mark_here(progress, None)
    elif position is not None:
        marks |= _mark_passes(flow, position)
        marks[position.place] = _mark_here(progress, marks.get(position.place))
    return {
        place: mark
        for place, mark in marks.items()
        if within is None or f"{place}/".startswith(f"{within}/")
    }


def list_shared_roles(flow: Flow) -> set[str]:
    """Return the roles that play at several places, whose visits do not tell where they ran."""
    counts = Counter(
        role for node in flow.nodes.values() if node.kind == "agent" for role in node.roles
    )
    return {role for role, count in counts.items() if count > 1}


def mark_split(place: str, ended: int, branches: Sequence[Mapping[str, Mark]]) -> dict[str, Mark]:
    """Return the marks of a thread split at *place*; *ended* branches completed or killed."""
    found: dict[str, list[Mark]] = {}
    for marks in branches:
        for inner, mark in marks.items():
            found.setdefault(inner, []).append(mark)
    told = f"{ended} of {len(branches)}"
    here = Mark("now", f"▶ {told} ended", f"has split, and {told} branches have ended")
    return {inner: merge_marks(marks) for inner, marks in found.items()} | {place: here}


def _mark_passes(flow: Flow, position: Position) -> dict[str, Mark]:
    marks = {}
    for around in position.on_the_way[:-1]:
        if around.turn is not None:
            word = "item" if flow.nodes[around.place].kind == "map" else "pass"
            told = f"{word} {around.turn + (word == 'item')}"
            marks[around.place] = Mark("now", f"▶ {told}", f"the thread is in {told}")
    return marks


def _mark_here(progress: Progress, done: Mark | None) -> Mark:
    state, badge, words = _stand(progress)
    if done is None:
        return Mark(state, badge, words)
    return Mark(state, f"{badge} · {done.badge}", f"{words}; it {done.words}")


def _stand(progress: Progress) -> tuple[MarkState, str, str]:
    tries = progress.attempts
    if progress.tried and progress.status == "ready":
        doing = "is at work" if progress.is_at_work else "is next"
        return "now", f"▶ {progress.tried}", f"{doing}: {progress.tried}"
    failed = f" after {_tries(tries)}" if tries else ""
    if progress.is_at_work or progress.status == "ready":
        here = "at work" if progress.is_at_work else "next"
        state: MarkState = "failed" if tries and not progress.is_at_work else "now"
        return state, f"▶ try {tries + 1}" if tries else f"▶ {here}", f"is {here}{failed}"
    state, badge, words = _STANDS[progress.status]
    if progress.waits_for_limit and progress.status == "waiting":
        badge, words = "? limit", "waits until a limit ends"
    if progress.status == "failed" and tries:
        badge = f"✗ {_tries(tries)}"
    return state, badge, words + failed


def _tries(number: int) -> str:
    return "1 try" if number == 1 else f"{number} tries"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
