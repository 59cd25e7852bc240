"""The kit: what an agent costs beside its work.

Owns: the agents that are compared, and the project's limits for them.
Knows nothing of: how processes are timed, how steps are taken.
"""

import os
import sys
from collections.abc import Mapping

from bench.deep import Bench
from bench.report import Limit, Row, Table
from bench.timing import Case, Series, ratio, take_turns, time_process
from bench.world import World, begin_thread

from uwf_git.commands.workflow_put import put_workflow
from uwf_git.store.store import create_store

PASS = "python -c pass"
BASELINE = "python -c 'import dulwich.repo'"
IMPORT = "python -c 'import uwf_git.agentkit'"
BARE = "an agent of three lines"
PROGRAM = "a program that answers at once"
ADAPTER = "an adapter that drives this program"

_IMPORT = (Limit("over_baseline", 1.3),)
_ADAPTER = (Limit("over_bare", 1.3),)

_WORKFLOW = """\
name: kit
roles:
  worker:
    systemPrompt: Work.
    outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
moderator:
  graph:
    - from: $START
      transitions: [{to: worker}]
    - from: worker
      transitions: [{to: $END}]
"""

_BARE_AGENT = """\
import sys
from uwf_git.agentkit import AgentResult, create_agent
sys.exit(create_agent(lambda context: AgentResult({"n": context.visit}, ""))())
"""

_ADAPTER_AGENT = """\
import json, sys
from uwf_git.agentkit.adapter import Answer
from uwf_git.agentkit.command_adapter import Command, CommandAdapter, adapter_main

def build(asked, folder):
    return Command((PROGRAM,), asked.prompt.encode())

def parse(ended):
    said = json.loads(ended.run.stdout)
    return Answer(text=said["text"], structured=said["object"])

PROGRAM = sys.argv.pop(1)
sys.exit(adapter_main(CommandAdapter(name="bench", programs=(), build=build, parse=parse))())
"""

_FAKE = """\
#!/bin/sh
echo '{"text": "", "object": {"n": 1}}'
"""


def measure_kit(bench: Bench) -> list[Table]:
    """Compare agents, called as the engine calls them, from their start to their end."""
    scale = bench.scale
    cases = _cases(bench.world)
    series = take_turns(cases, rounds=scale.rounds, warm_up=scale.warm_up)
    return [Table(f"the kit, {scale.rounds} rounds", [_row(name, series) for name in cases])]


def _cases(world: World) -> dict[str, Case]:
    store = create_store(world.path("kit.git"), environ=world.environ)
    put_workflow(store, world.caller, _WORKFLOW.encode())
    thread = begin_thread(world, store, "kit")
    step_dir = world.path("step")
    os.mkdir(step_dir)
    environ = {**world.environ, "UWF_REPO": store.path, "UWF_STEP_DIR": step_dir}
    environ["UWF_TRACE"] = os.path.join(step_dir, "trace.jsonl")
    program = _write(world, "fake-program", _FAKE)
    bare, adapter = _write(world, "bare.py", _BARE_AGENT), _write(world, "a.py", _ADAPTER_AGENT)

    def process(*argv: str) -> Case:
        return lambda: time_process(argv, environ, log=world.path("log"))

    python = sys.executable
    return {
        PASS: process(python, "-c", "pass"),
        BASELINE: process(python, "-c", "import dulwich.repo"),
        IMPORT: process(python, "-c", "import uwf_git.agentkit"),
        BARE: process(python, bare, thread.id),
        PROGRAM: process(program),
        ADAPTER: process(python, adapter, program, thread.id),
    }


def _write(world: World, name: str, text: str) -> str:
    path = world.path(name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


def _row(name: str, series: Mapping[str, Series]) -> Row:
    own = series[name]
    figures: dict[str, float | None] = dict(own.figures())
    limits: tuple[Limit, ...] = ()
    if figures and name == IMPORT:
        figures["over_baseline"], limits = ratio(own, series[BASELINE]), _IMPORT
    if figures and name == ADAPTER:
        figures["over_bare"], limits = _over_bare(series), _ADAPTER
    return Row(name, figures, limits, own.failure)


def _over_bare(series: Mapping[str, Series]) -> float | None:
    """Give what the adapter takes without its program, in times of the bare agent."""
    if any(series[name].failure is not None for name in (BARE, PROGRAM)):
        return None
    return (series[ADAPTER].median_ms - series[PROGRAM].median_ms) / series[BARE].median_ms
