import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agentkit.conftest import MakeContext, Turn, make_step
from cli.program import Ran
from model.telling import tell_cases

from uwf_git.agentkit.adapters.check import find_begin_ms, parse_check_arguments

LINES = Path(__file__).parent / "made_up" / "check_lines.json"


Check = Callable[..., Ran]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Run uwf-check in a directory without a thread, on an answer with *meta*."""

    def run(*argv: str, meta: Any = None, **environ: str) -> Ran:
        reply = tmp_path / "reply.json"
        reply.write_bytes(b"\xef\xbb\xbf" + json.dumps({"role": "counter", "meta": meta}).encode())
        given = {"UWF_REPLY": str(reply), "UWF_REPO": ""} | environ
        return Turn(tmp_path, "").adapter("check", *argv, **given)

    return run


def add_plan(project: Path, name: str, text: str = "Do it.") -> None:
    (project / "docs/plans").mkdir(parents=True, exist_ok=True)
    (project / "docs/plans" / name).write_text(text, encoding="utf-8")


def test_report_that_is_not_complete_tells_its_issues_last(check: Check) -> None:
    ran = check("completed", meta={"completed": False, "issues": ["缺少密钥", "b"]}, LC_ALL="C")

    assert (ran.status, ran.out, ran.err) == (1, "not completed: 缺少密钥; b\n", "")


def test_report_that_is_complete(check: Check) -> None:
    ran = check("completed", meta={"completed": True})

    assert (ran.status, ran.out, ran.err) == (0, "", "")


def test_claims_since_a_time(check: Check, tmp_path: Path) -> None:
    (tmp_path / "新.py").touch()
    now_ms = round(time.time() * 1000)
    meta = {"files_created": ["新.py", "b"], "files_modified": ["c"]}

    ran = check("files", "--since", str(now_ms), meta=meta, LC_ALL="C")
    later = check("files", "--since", str(now_ms + 60_000), meta={"files_created": ["新.py"]})

    unknown = "which does not exist, and git knows of no deletion"
    assert ran.out == f"files_created names 'b', {unknown}; files_modified names 'c', {unknown}\n"
    assert ran.status == 1
    assert later.out == "files_created names '新.py', which has not changed since this plan began\n"


def test_words_are_utf_8_in_every_locale(check: Check) -> None:
    told = check("grüß", LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0").err

    assert told.endswith("error: uwf-check takes completed, files or plans, not 'grüß'\n")


def test_report_without_claims(check: Check) -> None:
    ran = check("files", meta={"files_created": []})

    assert (ran.status, ran.out) == (0, "the report names no files\n")


def test_plans_in_another_alphabet_and_locale(check: Check, tmp_path: Path) -> None:
    add_plan(tmp_path, "000-准备.md", "目标\r\n")
    add_plan(tmp_path, "002-实现.md", "步骤")

    told = check("plans", LC_ALL="C")
    listed = check("plans", "--list", "T", LC_ALL="C")

    assert (told.status, told.out) == (0, "there is no plan 001\n")
    assert json.loads(listed.out) == {
        "meta": {
            "plans": [
                {"file": "docs/plans/000-准备.md", "number": 0, "name": "准备"},
                {"file": "docs/plans/002-实现.md", "number": 2, "name": "实现"},
            ]
        },
        "content": "# docs/plans/000-准备.md\n\n目标\n\n# docs/plans/002-实现.md\n\n步骤\n",
    }


def test_plans_that_cannot_be_carried_out(check: Check, tmp_path: Path) -> None:
    add_plan(tmp_path, "000-a.md", "")
    add_plan(tmp_path, "000-b.md")
    add_plan(tmp_path, "002-c.md")
    reasons = "docs/plans/000-a.md, docs/plans/000-b.md share the number 0; "
    reasons += "docs/plans/000-a.md is empty"

    told = check("plans")
    listed = check("plans", "--list")

    assert (told.status, told.out) == (1, f"there is no plan 001\n{reasons}\n")
    assert (listed.status, listed.out) == (1, "")
    assert listed.err.splitlines()[-1].endswith(reasons)


def test_turn_tells_the_directory_and_the_time(turn: Turn) -> None:
    """The directory is in the state of the thread, the time that of the step before."""
    turn.uwf("thread", "patch", turn.thread, json.dumps({"planDir": "plans"}))
    (turn.place / "plans").mkdir()
    (turn.place / "plans/000-a.md").write_text("x")
    reply = turn.place / "reply.json"
    claims = {"files_created": ["plans/000-a.md", "missing"]}
    reply.write_text(json.dumps({"role": "counter", "meta": claims}))
    of_turn = {"UWF_THREAD_ID": turn.thread, "UWF_ROLE": "counter", "UWF_REPLY": str(reply)}

    plans = turn.adapter("check", "plans", **of_turn)
    files = turn.adapter("check", "files", **of_turn)

    assert (plans.status, plans.out) == (0, "")
    assert files.status == 1
    assert files.out.startswith("files_created names 'missing', which does not exist")


@pytest.mark.parametrize(
    ("steps", "begin_ms"),
    [
        ([], 1_760_000_000_000),
        ([("plans", {}, 10)], 10),
        ([("plans", {}, 10), ("executor", {}, 20), ("verifier", {"verified": False}, 30)], 10),
        ([("plans", {}, 10), ("executor", {}, 20), ("verifier", {"verified": True}, 30)], 30),
        ([("plans", {}, 10), ("executor", {}, 20)], 10),
    ],
)
def test_plan_begins_where_the_step_before_its_first_try_ends(
    context: MakeContext, steps: list[tuple[str, Any, int]], begin_ms: int
) -> None:
    taken = [make_step(role, meta=meta, timestamp=at) for role, meta, at in steps]

    assert find_begin_ms(context(steps=taken), "executor") == begin_ms


def test_answer_that_cannot_be_read(check: Check, tmp_path: Path) -> None:
    ran = check("completed", UWF_REPLY=str(tmp_path / "missing"))
    none = check("completed", UWF_REPLY="")

    assert ran.status == 2
    assert ran.err.splitlines()[-1].startswith(f"error: the answer in {tmp_path}/missing cannot be")
    assert none.err.splitlines()[-1] == (
        "error: UWF_REPLY is not set, so there is no answer to check"
    )


def test_command_lines(golden: Callable[[str, str], None]) -> None:
    answers = {"parse_check_arguments": lambda line: parse_check_arguments(line.split())}
    golden("check_lines.txt", tell_cases(LINES, answers))
