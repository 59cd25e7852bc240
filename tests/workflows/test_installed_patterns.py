"""The patterns as a user has them: from an installed wheel, with agents that are programs."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from workflows.pattern_runs import RUNS, PatternRun, says

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / "build" / "installed" / "bin"


class Installed:
    """The installed `uwf`, in a directory and on a store of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        path = f"{INSTALLED}:{os.environ['PATH']}"
        store = str(place / "store.git")
        self.environ = {**os.environ, "PATH": path, "UWF_REPO": store}
        self("init", store)

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["uwf", *words],
            env=self.environ,
            cwd=self.place,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )

    def run(self, run: PatternRun) -> tuple[dict[str, Any], list[str]]:
        """Run a pattern; return the document, and the steps that the progress names."""
        (self.place / "script.yaml").write_text(json.dumps(run.script))
        self.environ["UWF_AGENT"] = f"uwf-mock {self.place / 'script.yaml'}"
        ran = self("run", run.pattern, "-p", "Do it.", "--jobs", "1")
        assert ran.returncode == 0, ran.stderr
        told = re.findall(r"^(?:\d+ \S+: (?:.*?: )?)?step \d+ (\S+):", ran.stderr, re.MULTILINE)
        told += re.findall(r"^(\S+) waits for a person$", ran.stderr, re.MULTILINE)
        return json.loads(ran.stdout), told


@pytest.fixture
def uwf(tmp_path: Path) -> Installed:
    if not INSTALLED.is_dir():
        pytest.skip("nothing is installed: tests/distribution/install.sh")
    return Installed(tmp_path)


@pytest.mark.parametrize("run", RUNS, ids=[f"{run.pattern}-{len(run.steps)}" for run in RUNS])
def test_installed_pattern_runs_from_end_to_end(run: PatternRun, uwf: Installed) -> None:
    told, steps = uwf.run(run)

    assert (told["stopped"], steps) == (run.stopped, run.steps)
    assert uwf("verify").returncode == 0


def test_person_answers_and_the_approved_plan_is_carried_out(uwf: Installed) -> None:
    run = next(run for run in RUNS if run.pattern == "approve")
    told, _ = uwf.run(run)
    thread = told["thread"]

    waiting = uwf("thread", "list", "--status", "waiting", "--format=text").stdout
    assert "? waiting  approve" in waiting
    assert uwf("thread", "answer", thread, "--meta", '{"approved": true}').returncode == 0
    ran = uwf("thread", "run", thread)

    assert json.loads(ran.stdout)["status"] == "completed"
    assert "executor: Done as planned." in ran.stderr


def test_workflow_is_drafted_and_run_in_chinese_without_a_locale(uwf: Installed) -> None:
    draft = """\
name: 写信
description: 写一封信
roles:
  作者: {systemPrompt: 写信。, outputSchema: true}
root: {type: sequential, nodes: [{type: agent, agentId: 作者}]}
"""
    bad = says(
        draft.replace("agentId: 作者", "agentId: 作家"), name="写信", why="简单", questions=[]
    )
    good = says(draft, name="写信", why="简单", questions=[])
    script = {"drafter": [bad, good], "作者": [says("亲爱的艾达")]}
    (uwf.place / "script.yaml").write_text(json.dumps(script))
    uwf.environ |= {"LC_ALL": "C", "UWF_AGENT": f"uwf-mock {uwf.place / 'script.yaml'}"}

    ran = uwf("workflow", "draft", "给艾达写一封信", "--yes", "--run")

    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["status"], told["steps"]) == ("completed", 1)
    shown = json.loads(uwf("thread", "show", told["thread"]).stdout)
    assert shown["prompt"] == "给艾达写一封信"
    assert uwf("verify").returncode == 0
