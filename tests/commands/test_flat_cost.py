"""A step costs the same at any depth: the objects that each way into a turn reads, counted."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from commands import turns
from commands.world import World, says

from uwf_git import AgentContext, TaskRuntime
from uwf_git.agentkit import build_prompt, load_context
from uwf_git.agentkit.llm.tools import ToolArguments, fetch_thread
from uwf_git.commands.control.answer import build_page
from uwf_git.commands.inspect.context import get_context, get_past_context
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.mcp.calls import read_role, read_step, read_thread, submit_result
from uwf_git.commands.mcp.server import McpPlace
from uwf_git.commands.start import find_fork_point
from uwf_git.engine.turn_context import parse_context
from uwf_git.model.definition.definition import Definition, RoleDefinition
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow import START, Transition, build_workflow
from uwf_git.store.threads.heads import get_head
from uwf_git.store.workflows import SourceFiles, add_version

# A prompt shows fifty steps before the newest.
SHALLOW, MIDDLE, DEEP = 10, 60, 300

# Names decide in which folders nodes lie, and so how many folders two reads share.
NOISE = 8

ENDLESS = "endless"

CONDITIONS = """\
name: rounds
roles:
  worker:
    outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
moderator:
  - {from: $START, to: worker}
  - {from: worker, to: $END, when: 'history[-1].meta.n < 0'}
  - {from: worker, to: worker, when: 'history[-3].meta.n = meta.n and $count(history) = depth - 1'}
  - {from: worker, to: $END}
"""


def put_endless(world: World) -> None:
    """Put a workflow whose steps cost no fork. No file can say it, for each must lead to an end."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    definition = Definition(
        name=ENDLESS,
        description="",
        roles={"worker": RoleDefinition("worker", "Works", "Work.", None, schema)},
        graph={START: (Transition("worker", None),), "worker": (Transition("worker", None),)},
        default_agent=None,
        agent_overrides={},
        initial_state=None,
    )
    node, closure = build_workflow(definition, timestamp=0)
    added, signing = (ENDLESS, node, closure), world.caller.signing(world.store)
    add_version(world.store, None, added=added, source=SourceFiles(b""), signing=signing)


class Way:
    """What is counted, on a thread of any depth."""

    def __init__(self, world: World, thread: ThreadId) -> None:
        self.world, self.thread = world, thread

    def context(self) -> AgentContext:
        return parse_context(get_context(self.world.store, self.thread))

    def mcp(self) -> McpPlace:
        step_dir = self.world.place / "step"
        step_dir.mkdir(exist_ok=True)
        return McpPlace(lambda: self.world.store, self.thread, "worker", None, str(step_dir))

    def loaded(self) -> AgentContext:
        environ = {"UWF_REPO": self.world.store.path, "UWF_ROLE": "worker"}
        return load_context(environ, [self.thread])

    def past(self) -> Mapping[str, Any]:
        head = get_head(self.world.store, self.thread)
        return get_past_context(
            self.world.store, find_fork_point(self.world.store, head, head.commit)
        )

    def step(self) -> None:
        self.world.step(self.thread, says({"n": 1}))

    def amend(self, workflow: str) -> None:
        """Go on by another workflow."""
        self.world.amend(self.thread, workflow=workflow)

    def command(self) -> None:
        """Play a step by a program, as a new process would."""
        agent = self.world.program("""printf '{"meta": {"n": 1}}'""")
        TaskRuntime(self.world.store.path, cwd=self.world.place).task(self.thread).step(agent=agent)

    def run(self) -> None:
        """Drive a step by a function."""
        runtime = TaskRuntime(self.world.store.path, players={"p": lambda _context: {"n": 1}})
        runtime.task(self.thread).run(agent="python:p", max_steps=1)

    def function(self, look: Callable[[AgentContext], object]) -> None:
        """Play a step by a function, as a new process would."""

        def play(context: AgentContext) -> Mapping[str, Any]:
            look(context)
            return {"n": 1}

        runtime = TaskRuntime(self.world.store.path, players={"p": play})
        runtime.task(self.thread).step(agent="python:p")


WAYS: dict[str, Callable[[Way], object]] = {
    "context": lambda way: way.context().depth,
    "newest three": lambda way: [step.content for step in way.context().steps[-3:]],
    "newest of a role": lambda way: next(
        step for step in reversed(way.context().steps) if step.role == "worker"
    ),
    "past context": lambda way: way.past()["head"],
    "kit": lambda way: way.loaded().steps[-1].content,
    "thread tool": lambda way: fetch_thread(
        way.context(), ToolArguments("t", {"step": way.context().depth})
    ),
    "mcp role": lambda way: read_role(way.mcp(), {}),
    "mcp newest step": lambda way: read_step(way.mcp(), {"index": -1}),
    "mcp newest steps": lambda way: read_thread(way.mcp(), {"last": 3}),
    "mcp result": lambda way: submit_result(way.mcp(), {"meta": {"n": 1}}),
    "step by a command": lambda way: way.command(),
    "step by a function": lambda way: way.function(lambda _context: None),
    "step by a function that looks back": lambda way: way.function(
        lambda context: [step.content for step in context.steps[-3:]]
    ),
    "step": Way.step,
    "run": Way.run,
    "show": lambda way: show_thread(way.world.store, way.thread),
    "person's page": lambda way: build_page(way.context()),
}

LONG = {
    "prompt": lambda way: build_prompt(way.context()),
    "small prompt": lambda way: build_prompt(way.context(), budget=2_000),
    "prompt of the kit": lambda way: build_prompt(way.loaded()),
}
"""What reads fifty steps, if there are so many: of 240 more steps one each would be 240 reads."""


def count_reads(way: Way, read: Callable[[Way], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many objects a new process reads."""
    way.world.reopen()
    with monkeypatch.context() as patched:
        counted = turns.count_reads(patched)
        read(way)
    return len(counted.objects)


def test_each_way_into_a_turn_reads_as_much_at_any_depth(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_endless(world)
    conditions = world.put(CONDITIONS).workflow
    thread = world.start(workflow=ENDLESS)
    way = Way(world, thread)
    counts: dict[int, dict[str, int]] = {}
    for depth in (SHALLOW, MIDDLE, DEEP):
        while world.snapshot(thread).record.depth < depth:
            world.step(thread, says({"n": 1}))
        counts[depth] = {
            name: count_reads(way, read, monkeypatch)
            for name, read in (WAYS | LONG).items()
            if depth != MIDDLE or name in LONG
        }
        way.amend(conditions)
        counts[depth]["conditions"] = count_reads(way, Way.step, monkeypatch)
        way.amend(ENDLESS)

    few, some, many = (counts[depth] for depth in (SHALLOW, MIDDLE, DEEP))
    assert {
        name: many[name] - few[name] for name in few.keys() - LONG if many[name] > few[name] + NOISE
    } == {}
    assert {
        name: many[name] - some[name] for name in LONG if many[name] > some[name] + 4 * NOISE
    } == {}


ROUNDS = """\
name: rounds
description: One pass a step.
initialState: {most: 100000, n: 0}
root:
  type: loop
  maxIterations: ${state.most}
  condition: state.n < 1000000 && iteration < 100000
  nodes:
    - {type: agent, agentId: worker, input: 'round ${iteration} of ${state.most}'}
    - type: conditional
      condition: iteration > 100000
      nodes: [{type: agent, agentId: closer}]
"""


def test_a_turn_of_a_flow_reads_as_much_in_any_pass(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = world.begun(ROUNDS)
    way = Way(world, thread)
    reads: dict[str, Callable[[Way], object]] = {
        "step": Way.step,
        "context": lambda way: way.context().input,
        "show": lambda way: show_thread(way.world.store, way.thread),
    }
    counts: list[dict[str, int]] = []
    for depth in (SHALLOW, DEEP):
        while world.snapshot(thread).record.depth < depth:
            world.step(thread, says({"n": 1}))
        counts.append({name: count_reads(way, read, monkeypatch) for name, read in reads.items()})

    few, many = counts
    assert world.snapshot(thread).get_present().at == f"0.{DEEP + 1}/0"
    assert {name: many[name] - few[name] for name in few if many[name] > few[name] + NOISE} == {}


def test_a_step_reads_as_much_behind_many_controls(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_endless(world)
    way = Way(world, world.start(workflow=ENDLESS))
    way.step()
    counts: list[int] = []
    for pauses in (1, 100):
        for _each in range(pauses):
            world.pause(way.thread)
            world.resume(way.thread)
        counts.append(count_reads(way, Way.step, monkeypatch))

    few, many = counts
    assert many <= few + NOISE
