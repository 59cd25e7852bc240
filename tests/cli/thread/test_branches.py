"""Threads that have split, on the command line: exit statuses, documents, progress."""

import json
import re

import pytest
from cli.program import Uwf

from uwf_git.commands.step.step_thread import list_leaves
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import read_snapshot
from uwf_git.store.threads.local_files import lock_thread

CHECKS = """\
name: checks
root:
  type: parallel
  name: quality
  nodes:
    - {type: agent, agentId: reviewer}
    - {type: agent, agentId: tester}
"""


def split(uwf: Uwf, script: str = "echo done", *, flow: str = CHECKS) -> str:
    """Start a thread of CHECKS, and have it split."""
    return uwf.stepped(uwf.agent(script), workflow=flow)


@pytest.fixture
def thread(uwf: Uwf) -> str:
    """Return a thread of CHECKS that has split."""
    return split(uwf)


def test_a_terminal_has_short_ids_of_branches(uwf: Uwf) -> None:
    thread = split(uwf)
    environ = {**uwf.session.environ, "TERM": "xterm", "COLUMNS": "60"}
    screen = {"stdout_is_tty": True, "output_format": "text", "environ": environ}
    told = uwf("thread", "show", thread, **screen).out
    stepped = uwf("thread", "step", thread, **screen).out

    ids = [re.search(rf"{role} ([0-9A-Z]+) ready", told) for role in ("reviewer", "tester")]
    assert all(each is not None and len(each[1]) < 26 for each in ids)
    begun = [uwf.json("thread", "show", each[1])["thread"] for each in ids if each is not None]
    assert len(set(begun)) == 2
    assert not any(each in stepped for each in begun)


def test_a_fork_of_a_branch_says_that_the_limits_above_do_not_hold_for_it(uwf: Uwf) -> None:
    thread = split(uwf, flow=f"{CHECKS}config: {{maxSteps: 9}}\n")
    _store, (branch, _) = begun_branches(uwf, thread)

    assert f"the limits of thread {thread} do not hold" in uwf("thread", "fork", branch).err
    assert "limits" not in uwf("thread", "fork", thread).err


def test_a_branch_tells_its_own_steps_alone(uwf: Uwf) -> None:
    left, right = ("{type: agent, agentId: left}", "{type: agent, agentId: right}")
    nodes = f"[{left}, {{type: parallel, nodes: [{left}, {right}]}}]"
    thread = split(uwf, flow=f"name: later\nroot: {{type: sequential, nodes: {nodes}}}\n")
    uwf.json("thread", "step", thread)
    _store, (branch, _) = begun_branches(uwf, thread)

    assert "\nsteps     0\n" in uwf("thread", "show", branch, "--format", "text").out
    uwf.json("thread", "step", thread)
    assert "\nsteps     1, 3 with its branches\n" in (
        uwf("thread", "show", thread, "--format", "text").out
    )


def begun_branches(uwf: Uwf, thread: str) -> tuple[Store, list[ThreadId]]:
    """Begin the branches of a thread; return their store, and them."""
    store = open_store(str(uwf.session.repo), environ=uwf.session.environ)
    tip = read_snapshot(store, get_head(store, ThreadId(thread)).commit)
    return store, list(list_leaves(store, tip))


def test_a_step_of_a_busy_branch_is_exit_4_and_the_others_go_on(uwf: Uwf, thread: str) -> None:
    store, (first, second) = begun_branches(uwf, thread)

    with lock_thread(store, first, since_ms=0):
        ran = uwf("thread", "step", thread)

    assert ran.status == 4
    busy, other = json.loads(ran.out)["branches"]
    assert (busy["thread"], other["thread"]) == (first, second)
    assert "is busy" in busy["error"]
    assert other["role"] == "tester"
    assert f"error: thread {first} is busy" in ran.err
    assert uwf("thread", "step", thread).status == 0


def test_a_branch_whose_expression_has_no_answer_is_exit_1(uwf: Uwf) -> None:
    broken = CHECKS.replace("agentId: tester", 'agentId: tester, input: "${state.x.y}"')
    thread = split(uwf, flow=broken)

    ran = uwf("thread", "step", thread)

    assert ran.status == 1
    reviewer, tester = json.loads(ran.out)["branches"]
    assert (reviewer["role"], "undefined has no member" in tester["error"]) == ("reviewer", True)
    mended = f"`uwf thread patch {tester['thread']} JSON`"
    assert mended in ran.err
    shown = uwf("thread", "show", thread, "--format", "text").out
    assert f"held by   {tester['thread']}, whose next step cannot be asked: expression" in shown
    assert f"next: {mended}" in shown
    uwf.json("thread", "patch", tester["thread"], '{"x": {"y": 1}}')
    assert "heldBy" not in uwf.json("thread", "show", thread)


@pytest.mark.parametrize("words", [(), ("--jobs", "1")])
def test_a_run_tells_each_step_and_the_join(uwf: Uwf, words: tuple[str, ...]) -> None:
    path = uwf.file(CHECKS, name="checks.yaml")

    ran = uwf("run", path, "--agent", uwf.agent("echo done"), *words)

    assert ran.status == 0, ran.err
    told = re.sub(r"\d+\.\d s", "… s", ran.err).splitlines()
    assert told[1] == "split: quality into 2"
    assert sorted(told[2:4]) == [
        "0 reviewer: step 1 reviewer: done (… s)",
        "1 tester: step 1 tester: done (… s)",
    ]
    assert told[4] == "step 1 quality: 2 completed"
