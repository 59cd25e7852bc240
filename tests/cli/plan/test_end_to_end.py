"""`uwf plan` from end to end: every failure of the seed's loops, and a program called as `-p`."""

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

from cli.program import Uwf
from workflows.plan_agent import write_plan_agent

from uwf_git.store.store import create_store

# In the order in which each role is asked; after them all goes well.
FAILURES = {
    "planner crash": "exit status 1",
    "planner silent": "it left no .state/status.json",
    "planner incomplete": "no network",
    "planner none": "docs/plans has no plan file",
    "planner empty": "docs/plans/000-x.md is empty",
    "plan-verifier reject": "rejected: 缺少测试; write some",
    "executor crash": "exit status 1",
    "executor silent": "it left no .state/status.json",
    "executor incomplete": "no network",
    "executor lie": "src/nowhere",
    "verifier reject": "rejected: 缺少测试; write some",
}


def test_every_failure_of_the_loops_is_tried_again_with_its_reason(uwf: Uwf) -> None:
    agent = write_plan_agent(uwf.place, *FAILURES)

    ran = uwf("plan", "run", "做一个网站", "--agent", agent, "--max-retries", "7")

    assert (ran.status, json.loads(ran.out)["phase"]) == (0, "completed"), ran.err
    (log,) = (uwf.place / "docs/memory").iterdir()
    told = [
        line for line in log.read_text().splitlines() if "failed: " in line or "rejected" in line
    ]
    assert [line.partition(" ")[0] for line in told] == [each.split()[0] for each in FAILURES]
    for line, reason in zip(told, FAILURES.values(), strict=True):
        assert reason in line
    assert uwf("verify").status == 0


AI = r"""
import json, pathlib, sys, unicodedata
assert sys.argv[1] == "-p" and len(sys.argv) == 3, sys.argv
prompt = sys.argv[2]
prompts = pathlib.Path(__file__).with_name("prompts")
number = len(list(prompts.iterdir()))
prompts.joinpath(f"{number:02}").write_text(prompt, encoding="utf-8", newline="")
role = prompt.split("\n", 1)[0].removeprefix("# You are ")
name = "000-caf\u00e9 \u8ba1\u5212.md"


def report(file):
    told = dict(completed=True, summary="好了", files_created=[file])
    told |= dict(files_modified=[], issues=[], next_steps=[])
    text = json.dumps(told, indent=1, ensure_ascii=False).replace("\n", "\r\n")
    pathlib.Path(".state/status.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    print("我写好了报告。 I have written the report.")


if role == "planner":
    plan = pathlib.Path("docs/plans", unicodedata.normalize("NFD", name))
    plan.write_bytes("\ufeff# 写\r\n写 src/结果\r\n".encode())
    report(f"docs/plans/{name}")
elif role == "executor":
    pathlib.Path("src").mkdir(exist_ok=True)
    pathlib.Path("src/结果").write_text("x")
    report("src/结果")
else:
    is_first = not any("Your work was rejected" in each.read_text() for each in prompts.iterdir())
    told = dict(verified=role == "plan-verifier" or not is_first, checks=[])
    told |= dict(issues=["太短"], suggestion="更多")
    print("My verdict:\n```json\n" + json.dumps(told, ensure_ascii=False) + "\n```\nThat is all.")
"""


def test_an_ai_that_takes_a_prompt_in_a_chinese_project_under_a_plain_locale(
    tmp_path: Path,
) -> None:
    create_store(str(tmp_path / "store.git"))
    project = tmp_path / unicodedata.normalize("NFD", "项目 café")
    project.mkdir()
    (tmp_path / "prompts").mkdir()
    (tmp_path / "ai.py").write_text(AI, encoding="utf-8")
    (tmp_path / "任务.md").write_bytes("\ufeff做一个网站\r\n用中文\r\n".encode())

    def uwf(*words: str) -> subprocess.CompletedProcess[str]:
        plain = {"LC_ALL": "C", "UWF_REPO": str(tmp_path / "store.git"), "UWF_FORMAT": "json"}
        return subprocess.run(
            [sys.executable, "-m", "uwf_git", "plan", *words, "-d", str(project)],
            cwd=tmp_path,
            env={**os.environ, **plain},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    ran = uwf("run", "-f", "任务.md", "--ai", f"{sys.executable} {tmp_path}/ai.py")

    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["phase"], told["task"]) == ("completed", "做一个网站\r\n用中文")
    (row,) = json.loads(uwf("plans").stdout)
    assert (row["name"], row["status"]) == ("café 计划", "completed")
    prompts = [
        each.read_text(encoding="utf-8") for each in sorted((tmp_path / "prompts").iterdir())
    ]
    roles = [prompt.split("\n", 1)[0].removeprefix("# You are ") for prompt in prompts]
    assert roles == ["planner", "plan-verifier", *["executor", "verifier"] * 2]
    assert "写 src/结果" in prompts[2]
    assert "太短" in prompts[4]
    assert "更多" in prompts[4]
    (log,) = (project / "docs/memory").iterdir()
    assert "executor (uwf-cli): 好了; created: src/结果" in log.read_text(encoding="utf-8")
