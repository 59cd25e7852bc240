"""The conformance suite of the Model Context Protocol against `/mcp` (npm; `.ci/run`)."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands.world import make_world
from seal import START_MS

from uwf_git.model.names import ThreadId

HERE = Path(__file__).parent
BIN = Path(os.environ.get("UWF_CONFORMANCE", HERE.parents[2] / "build" / "conformance"))
BIN = BIN / "node_modules" / ".bin"

pytestmark = [
    pytest.mark.skipif(not (BIN / "conformance").exists(), reason="the suite is not installed")
]

ROLE = """\
    description: {role}
    systemPrompt: Do it.
    outputSchema: {{type: object, properties: {{confirm: {{type: boolean}}}}}}
"""
PLAIN = """\
name: {name}
description: What the suite starts.
roles:
  {role}:
{text}agentOverrides: {{{agents}}}
moderator:
  - {{from: $START, to: {role}}}
  - {{from: {role}, to: $END}}
"""
# Two branches ask at once.
BOTH = """\
name: multi_input
description: What the suite starts.
agentOverrides: {{one: human, two: human}}
roles:
  one:
{text}  two:
{text}root:
  type: parallel
  nodes:
    - {{type: agent, agentId: one}}
    - {{type: agent, agentId: two}}
"""
AGENT = """\
#!/bin/sh
case "$UWF_ROLE" in wait*) sleep "${UWF_ROLE#wait}" ;; fail) exit 7 ;; esac
echo '{"meta": {}}'
"""


# The scenarios of what this server does, and the checks that it fails, each with the reason.
_NO_FIXTURE = "this server has no such tool: it neither logs nor asks while a call is open"
SCENARIOS: dict[str, dict[str, str]] = {
    "tools-list": {},
    "resources-templates-read": {
        "resources-templates-read": "it reads an address of the suite's own example server"
    },
    "sep-2164-resource-not-found": {},
    "caching": {
        "sep-2549-prompts-list-caching-hints": "there are no prompts, and none are declared"
    },
    "http-header-validation": {},
    "dns-rebinding-protection": {},
    "server-stateless": dict.fromkeys(
        (
            "sep-2575-server-rejects-undeclared-capability",
            "sep-2575-missing-capability-http-400",
            "sep-2575-http-server-no-independent-requests-on-stream",
            "sep-2575-server-no-log-without-loglevel",
        ),
        _NO_FIXTURE,
    ),
    "tasks-lifecycle": {
        "sep-2663-tasks-get-status-failed": "no thread fails as an error of the protocol"
    },
    "tasks-capability-negotiation": {},
    "tasks-wire-fields": {},
    "tasks-request-state-removal": {},
    "tasks-mrtr-input": {},
    "tasks-request-headers": {},
    "tasks-dispatch-and-envelope": {},
    "tasks-required-task-error": {
        "sep-2663-server-returns-missing-capability-when-required": "no tool needs tasks: a client "
        "without them is told the thread"
    },
    "tasks-mrtr-composition": {
        "sep-2663-mrtr-synchronous-before-task-creation": "no tool asks before it starts a task"
    },
}


def workflow(name: str, role: str, agents: str = "") -> str:
    return PLAIN.format(name=name, role=role, text=ROLE.format(role=role), agents=agents)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    world = make_world(
        tmp_path_factory.mktemp("suite"), lambda: START_MS, lambda: ThreadId("never")
    )
    for seconds in ("", "1", "2", "60"):
        world.put(workflow(f"slow_compute{seconds}", f"wait{seconds or 0}"))
    world.put(workflow("failing_job", "fail"))
    world.put(workflow("confirm_delete", "person", "person: human"))
    world.put(BOTH.format(text=ROLE.format(role="asks")))
    process = subprocess.Popen(
        [sys.executable, str(HERE / "suite_server.py"), "ui", "--no-open"],
        env={**os.environ, "UWF_REPO": world.store.path, "UWF_AGENT": world.program(AGENT)},
        cwd=world.place,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["address"].partition("#")[0] + "mcp"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario_fails_only_where_it_is_known_to(url: str, scenario: str, tmp_path: Path) -> None:
    words = ["server", "--url", url, "--scenario", scenario, "--spec-version", "2026-07-28"]
    words += ["--force", "-o", str(tmp_path), "--timeout", "120000"]
    subprocess.run([BIN / "node", BIN / "conformance", *words], capture_output=True, check=False)
    (results,) = tmp_path.glob("*/checks.json")
    checks = json.loads(results.read_text())
    failed = {check["id"]: check for check in checks if check["status"] == "FAILURE"}
    assert set(failed) == set(SCENARIOS[scenario]), json.dumps(failed, indent=1)
    assert any(check["status"] == "SUCCESS" for check in checks)
