"""Benchmark of the agents of the kit, and the project's limits for them.

The program or endpoint behind an agent answers at once, so the rest of the time is the agent's own.
The fake claude starts `uwf mcp` and waits for it; the real one starts it in parallel with its own
start. So the measured cost of `uwf mcp` is an upper bound.
"""

import json
import os
import shlex
import sys
from collections.abc import Mapping

from bench.answering import answering
from bench.deep import Bench
from bench.report import Limit, Row, Table
from bench.timing import Case, Series, ratio, take_turns, time_process
from bench.world import World, begin_thread, find_program

from uwf_git.commands.workflow.build import put_workflow
from uwf_git.store.store import create_store

PASS = "python -c pass"
BASELINE = "python -c 'import dulwich.repo'"
IMPORT = "python -c 'import uwf_git.agentkit'"
BARE = "an agent of three lines"
PROGRAM = "a program that answers at once"
ADAPTER = "an adapter that drives this program"
CLAUDE_PROGRAM = "a claude that answers at once"
CLAUDE = "uwf-claude"
MCP = "uwf mcp, until it has told its tools"
CLAUDE_MCP = "uwf-claude, its claude waits for uwf mcp"
POST = "an agent of three lines and one POST by http.client"
LLM = "uwf-llm"

_IMPORT = (Limit("over_baseline", 1.3),)
_ADAPTER = (Limit("over_bare", 1.3),)

_LLM = (*_ADAPTER, Limit("over_post", 1.3))

_PROGRAMS = {ADAPTER: PROGRAM, CLAUDE: CLAUDE_PROGRAM, CLAUDE_MCP: CLAUDE_PROGRAM}
"""The program that each adapter drives; its time is not the adapter's."""

_WORKFLOW = """\
name: kit
roles:
  worker:
    systemPrompt: Work.
    outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
moderator:
  - {from: $START, to: worker}
  - {from: worker, to: $END}
"""

_BARE_AGENT = """\
import sys
from uwf_git.agentkit import AgentResult, create_agent
sys.exit(create_agent(lambda context: AgentResult({"n": context.visit}, ""))())
"""

_ADAPTER_AGENT = """\
import json, sys
from uwf_git.agentkit.turn import AdapterAnswer
from uwf_git.agentkit.programs.command import CommandAdapter, ProgramCall
from uwf_git.agentkit.programs.command import Report
from uwf_git.agentkit.programs.playing import adapter_main

def build(asked, folder):
    return ProgramCall((PROGRAM,), asked.prompt)

def read(ended):
    said = json.loads(ended.run.stdout)
    return Report(AdapterAnswer(text=said["text"], structured=said["object"]))

PROGRAM = sys.argv.pop(1)
sys.exit(adapter_main(CommandAdapter(name="bench", programs=(), build=build, read=read))())
"""

_FAKE = """\
#!/bin/sh
echo '{"text": "", "object": {"n": 1}}'
"""


_POSTING_AGENT = """\
import http.client, json, os, sys
from uwf_git.agentkit import AgentResult, create_agent

def answer(context):
    there = http.client.HTTPConnection("127.0.0.1", PORT)
    messages = [{"role": "user", "content": context.start.prompt}]
    body = json.dumps({"model": "bench", "messages": messages})
    there.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    said = json.loads(there.getresponse().read())["choices"][0]["message"]["content"]
    return AgentResult(json.loads(said)["meta"], "")

PORT = int(sys.argv.pop(1))
sys.exit(create_agent(answer)())
"""

_ANSWER = {"content": "Done.", "meta": {"n": 1}}

_FAKE_CLAUDE = f"""\
#!/bin/sh
[ -z "$ANTHROPIC_BENCH" ] || "$ANTHROPIC_BENCH"
echo '{
    json.dumps(
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "result": "",
            "structured_output": _ANSWER,
            "session_id": "s",
            "num_turns": 1,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
    )
}'
"""

_ASK_MCP = f"""\
#!/bin/sh
printf '%s\\n%s\\n' '{
    json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {}},
        }
    )
}' '{json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})}' |
    UWF_REPO=@repo UWF_THREAD_ID=@thread @python -P -m uwf_git mcp
"""


def measure_kit(bench: Bench) -> list[Table]:
    """Compare agents, called as the engine calls them, from their start to their end."""
    scale = bench.scale
    with answering(_ANSWER) as port:
        cases = _cases(bench.world, port)
        series = take_turns(cases, rounds=scale.rounds, warm_up=scale.warm_up)
    return [Table(f"the kit, {scale.rounds} rounds", [_row(name, series) for name in cases])]


def _cases(world: World, port: int) -> dict[str, Case]:
    store = create_store(world.path("kit.git"), environ=world.environ)
    put_workflow(store, world.caller, _WORKFLOW.encode())
    thread = begin_thread(world, store, "kit")
    step_dir = world.path("step")
    os.mkdir(step_dir)
    environ = {**world.environ, "UWF_REPO": store.path, "UWF_STEP_DIR": step_dir}
    environ |= {"UWF_THREAD_ID": thread.id, "UWF_ROLE": "worker"}
    environ["UWF_TRACE"] = os.path.join(step_dir, "trace.jsonl")
    program = world.write("fake-program", _FAKE)
    bare, adapter = world.write("bare.py", _BARE_AGENT), world.write("a.py", _ADAPTER_AGENT)
    posting, claude = world.write("p.py", _POSTING_AGENT), world.write("claude", _FAKE_CLAUDE)
    found = {"@repo": store.path, "@thread": thread.id, "@python": sys.executable}
    ask_mcp = world.write("ask-mcp", _fill(_ASK_MCP, found))
    environ |= {"UWF_CLAUDE_PROGRAM": claude, "UWF_LLM_MODEL": "bench"}
    environ["UWF_LLM_URL"] = f"http://127.0.0.1:{port}/v1"

    def process(*argv: str, **more: str) -> Case:
        return lambda: time_process(argv, {**environ, **more}, log=world.path("log"))

    python = sys.executable
    return {
        PASS: process(python, "-c", "pass"),
        BASELINE: process(python, "-c", "import dulwich.repo"),
        IMPORT: process(python, "-c", "import uwf_git.agentkit"),
        BARE: process(python, bare, thread.id),
        PROGRAM: process(program),
        ADAPTER: process(python, adapter, program, thread.id),
        CLAUDE_PROGRAM: process(claude),
        CLAUDE: process(find_program("uwf-claude"), thread.id),
        MCP: process(ask_mcp),
        CLAUDE_MCP: process(find_program("uwf-claude"), thread.id, ANTHROPIC_BENCH=ask_mcp),
        POST: process(python, posting, str(port), thread.id),
        LLM: process(find_program("uwf-llm"), thread.id),
    }


def _fill(text: str, words: Mapping[str, str]) -> str:
    for name, word in words.items():
        text = text.replace(name, shlex.quote(word))
    return text


def _row(name: str, series: Mapping[str, Series]) -> Row:
    own = series[name]
    figures: dict[str, float | None] = dict(own.figures())
    limits: tuple[Limit, ...] = ()
    if figures and name == IMPORT:
        figures["over_baseline"], limits = ratio(own, series[BASELINE]), _IMPORT
    if figures and name in _PROGRAMS:
        figures["over_bare"] = _over_bare(series, name)
        limits = () if name == CLAUDE_MCP else _ADAPTER
    if figures and name in (MCP, POST, LLM):
        figures["over_bare"] = ratio(own, series[BARE])
    if figures and name == LLM:
        figures["over_post"], limits = ratio(own, series[POST]), _LLM
    return Row(name, figures, limits, own.failure)


def _over_bare(series: Mapping[str, Series], name: str) -> float | None:
    """Return the time of an adapter without its program, as a multiple of the bare agent's."""
    program = _PROGRAMS[name]
    if any(series[each].failure is not None for each in (BARE, program)):
        return None
    return (series[name].median_ms - series[program].median_ms) / series[BARE].median_ms
