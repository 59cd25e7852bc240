"""What the tests draw: shipped workflows, the examples of flows, hostile texts, and by chance."""

import random
from pathlib import Path
from typing import Any

from workflow_file import read_flow_file

from uwf_git.engine.picture.plan import (
    Mark,
    MarkState,
    Progress,
    Subject,
    ThreadMarks,
    mark_places,
    mark_roles,
)
from uwf_git.model.definition.definition import Definition, Surroundings
from uwf_git.model.flow import Flow, FlowNode, parse_position
from uwf_git.model.workflow import END, START, Graph, Transition, build_moves, parse_flow_node

_ROOT = Path(__file__).parents[3]
SHIPPED = sorted((_ROOT / "uwf_git" / "workflows").glob("*.yaml"))
SEED_FLOWS = sorted((_ROOT / "tests" / "flows").glob("*.yaml"))

EVERY_KIND = """\
name: every-kind
description: Each kind of container once
root:
  type: sequential
  nodes:
    - type: map
      name: each feature
      over: state.features
      as: feature
      join: any
      nodes: [{type: agent, agentId: coder}, {type: agent, agentId: checker, output: done}]
    - type: conditional
      condition: state.risk === 'high'
      nodes: [{type: agent, agentId: ask}, {type: agent, agentId: look}]
      else: [{type: agent, agentId: publish}]
    - type: conditional
      name: maybe
      condition: state.late
      nodes: [{type: agent, id: 发布, agentId: publisher, timeout: 500}]
    - type: parallel
      tolerate: 1
      onError: continue
      nodes:
        - {type: agent, agentId: one}
        - {type: loop, maxIterations: 3, nodes: [{type: agent, agentId: two}]}
        - {type: agent, agentId: three, retries: 2}
"""

HOSTILE = (
    "</title></svg><script>alert(1)</script>",
    "\x1b[2J\x07\x9b31m",
    "\u202egnp.exe\u2066",
    "W" * 500,
    "if this is so, " * 40,
    "登录功能" * 125,
    "ﷺ﷽" * 20,
    "𒐫𒈙⸻" * 20,
    "👩\u200d💻" * 30,
    "Z\u0337\u0321\u0334" * 40,
    '"]; n0 --> n1["',
    "%%{init: {}}%%",
    "\\N\\G\\l\\",
    "#quot; &lt; &#60;",
    "`a` **b** _c_ [d](e) $$x$$",
    "end",
    "subgraph x",
    "\ud800\ufffe\x00",
    "",
    "   ",
    "a\nb\r\nc\td",
    "sk-ant-REDACTED-0123456789abcdef",
    "صفحة שלום ไทย हिन्दी",
)


def read_workflow(path: Path) -> Definition:
    """Return the workflow in the file at *path*."""
    return read_flow_file(path.read_text(), Surroundings(path.stem))


def subject_of(definition: Definition) -> Subject:
    """Return what the picture of *definition* shows."""
    moves: Graph | Flow = definition.graph
    if definition.flow is not None:
        moves = parse_flow_node(build_moves(definition.flow, timestamp=0))
    roles = {name: role.description for name, role in definition.roles.items()}
    return Subject(definition.name, definition.description, roles, moves)


def read_subject(path: Path) -> Subject:
    """Return what the picture of the workflow file at *path* shows."""
    return subject_of(read_workflow(path))


def every_kind() -> Subject:
    """Return a flow with each kind of container."""
    return subject_of(read_flow_file(EVERY_KIND, Surroundings("every-kind")))


def at(subject: Subject, progress: Progress, position: str | None = None) -> Subject:
    """Return *subject* with a thread that stands so, in a flow at *position*."""
    moves = subject.moves
    if isinstance(moves, Flow):
        found = None if position is None else parse_position(position)
        marks = mark_places(moves, progress, found)
    else:
        marks = mark_roles(progress)
    told = f"thread 01J00000000000000000000001, {progress.status}"
    return subject._replace(thread=ThreadMarks(told, marks))


def known_subjects() -> list[Subject]:
    """Return the shipped workflows, the seed's flows, and threads in all states."""
    shipped = {path.stem: read_subject(path) for path in SHIPPED}
    flows = {path.stem: read_subject(path) for path in SEED_FLOWS}
    solve, review = shipped["solve-issue"], shipped["code-review"]
    ran = {"preparer": 1, "planner": 1, "developer": 12}
    once = {"surveyor": 1, "correctness": 2}
    threads = [
        at(solve, Progress("ready", ran, "developer", is_at_work=True, attempts=1)),
        at(solve, Progress("waiting", ran, "reviewer")),
        at(solve, Progress("waiting", ran, "reviewer", waits_for_limit=True)),
        at(solve, Progress("failed", ran, "developer", attempts=3)),
        at(solve, Progress("ready", ran, END)),
        at(solve, Progress("completed", ran)),
        at(review, Progress("killed", once, last="correctness")),
        at(review, Progress("killed", {})),
        at(review, Progress("paused", once, "security")),
        at(flows["level-4"], Progress("ready", {"coder": 6}, "reviewer"), "0/1.3/1.2/0/1"),
        at(flows["coder-review-loop"], Progress("waiting", {"coder": 3}, "tester"), "0.3/0/1"),
        at(flows["level-1"], Progress("completed", {"worker": 3})),
        at(
            every_kind(),
            Progress("failed", {"coder": 3}, "one", attempts=2, given_up={"0/2/0": "no way"}),
            "0/1/e0",
        ),
    ]
    return [*shipped.values(), *flows.values(), every_kind(), *threads]


def draw_text(chance: random.Random, longest: int = 500) -> str:
    """Return a text by chance: words, ideographs, or a hostile one."""
    kind = chance.random()
    if kind < 0.2:
        return chance.choice(HOSTILE)
    letters = "登录功能代码審査がﾊﾝ한글" if kind < 0.4 else "abcdefghij klmnop WM._-\"'<>&il "
    length = chance.choice((3, 12, 40, longest))
    return "".join(chance.choices(letters, k=chance.randint(1, length)))


_STATES: tuple[MarkState, ...] = ("done", "now", "waits", "failed", "paused", "stopped")


def _draw_mark(chance: random.Random) -> Mark:
    return Mark(chance.choice(_STATES), f"✓ {draw_text(chance, 60)}", draw_text(chance, 60))


def draw_graph(chance: random.Random) -> Subject:
    """Return a graph by chance: up to 40 roles, all kinds of ways, some roles unreached."""
    names = list(dict.fromkeys(draw_text(chance, 60) or "x" for _ in range(chance.randint(1, 40))))
    names = [name for name in names if name not in {START, END}]
    graph: dict[str, tuple[Transition, ...]] = {}
    for number, name in enumerate([START, *names]):
        ways = []
        for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 6))):
            target = chance.choice((*names, END, *names[number : number + 1] * 20))
            ways.append(Transition(target, draw_text(chance)))
        if chance.random() < 0.7:
            ways.append(Transition(chance.choice((*names, END)), None))
        graph[name] = tuple(ways)
    roles = {name: draw_text(chance) if chance.random() < 0.7 else "" for name in names}
    subject = Subject(draw_text(chance), draw_text(chance), roles, graph)
    if chance.random() < 0.5:
        return subject
    places = chance.sample([START, END, *names], k=chance.randint(1, len(names)))
    marks = {place: _draw_mark(chance) for place in places}
    return subject._replace(thread=ThreadMarks(draw_text(chance), marks))


def draw_flow(chance: random.Random, most: int = 60) -> Subject:
    """Return a flow by chance: all kinds of containers, in one another."""
    nodes: dict[str, FlowNode] = {}

    def add(place: str, depth: int) -> None:
        kinds = ("agent", "workflow") if depth > 7 or len(nodes) > most else _KINDS
        kind = chance.choice(kinds)
        nodes[place] = FlowNode(place, kind, _draw_fields(chance, kind))
        if kind in {"agent", "workflow"}:
            return
        for index in range(chance.choice((1, 1, 2, 3, 5))):
            add(f"{place}/{index}", depth + 1)
        if kind == "conditional" and chance.random() < 0.6:
            for index in range(chance.choice((1, 2))):
                add(f"{place}/e{index}", depth + 1)

    for index in range(chance.choice((1, 1, 3))):
        add(str(index), 1)
    subject = Subject(draw_text(chance), draw_text(chance), {}, Flow(nodes))
    if chance.random() < 0.5:
        return subject
    places = chance.sample([START, END, *nodes], k=chance.randint(1, len(nodes)))
    marks = {place: _draw_mark(chance) for place in places}
    return subject._replace(thread=ThreadMarks(draw_text(chance), marks))


_KINDS: Any = (
    *("agent", "agent", "agent", "workflow", "sequential", "parallel", "loop"),
    *("conditional", "map"),
)


def _draw_fields(chance: random.Random, kind: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key in ("id", "name"):
        if chance.random() < 0.3:
            fields[key] = draw_text(chance, 200)
    needed = {
        "agent": {"agentId": draw_text(chance, 60) or "x"},
        "workflow": {"use": draw_text(chance, 60)},
        "conditional": {"condition": draw_text(chance)},
        "map": {"over": draw_text(chance)},
        "loop": {"condition": draw_text(chance)} if chance.random() < 0.7 else {},
    }
    fields |= needed.get(kind, {})
    if chance.random() < 0.3:
        fields |= {"timeout": 1500, "retries": 2, "output": draw_text(chance, 60)}
    return fields
