"""`uwf plan run` killed at every transition, then resumed: no step, no entry twice or missing.

Each process makes one transition, and is killed before it can do what follows; a chain of them goes
through all phases.
"""

import json
import os
import re
import signal
import time
from collections.abc import Callable
from itertools import takewhile

import pytest
from cli.program import Uwf
from store.killing import in_child, watched
from workflows.plan_agent import write_plan_agent

from uwf_git.commands.verify.verify import verify
from uwf_git.plan.phases import MEMORY_DIR, STATE_FILE, read_story
from uwf_git.store.store import open_store
from uwf_git.store.threads.naming import resolve_head

SAY = ("planner incomplete", "plan-verifier reject", "executor crash", "verifier reject")
ASKED = [
    "planner", *["planner", "plan-verifier"] * 2,
    "executor", *["executor", "verifier"] * 3,
]  # fmt: skip
STEPS = [*["planner", "plan-verifier"] * 2, "plans", *["executor", "verifier"] * 3]
MOST = 60

COMMIT = re.compile(r"^os\.rename .*/refs/threads/")
PLACES = {
    "before the commit": COMMIT,
    "before the state file": re.compile(r"^os\.rename .*/workflow\.state\.json'"),
    "before the log": re.compile(r"^os\.rename .*/session-[-0-9]*\.md'"),
    "before the agent": re.compile(r"^subprocess\.Popen .*plan-agent"),
}


def killed(die: Callable[[int, str], None], action: Callable[[], object]) -> bool:
    """Run *action* in a child that *die* may kill, and tell whether it did."""
    ended = in_child(lambda: watched(die, action))
    assert ended is None or ended is True, ended
    return ended is None


def killed_second(place: re.Pattern[str], action: Callable[[], object]) -> bool:
    """Run *action* in a child that dies the second time that it comes to *place*."""
    seen = 0

    def die(_number: int, what: str) -> None:
        nonlocal seen
        seen += bool(place.search(what))
        if seen == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    return killed(die, action)


def killed_at_work(action: Callable[[], object]) -> bool:
    """Run *action* in a child that dies as soon as an agent is at work."""
    is_begun = False

    def die(_number: int, what: str) -> None:
        nonlocal is_begun
        if is_begun:
            os.kill(os.getpid(), signal.SIGKILL)
        is_begun = bool(PLACES["before the agent"].search(what))

    return killed(die, action)


@pytest.mark.parametrize("place", [*PLACES, "at work"])
def test_killed_at_every_transition_and_resumed(uwf: Uwf, place: str) -> None:
    now = {"now_ms": lambda: time.time_ns() // 1_000_000}
    agent = write_plan_agent(uwf.place, *SAY)
    first = ("plan", "run", "做一个网站", "--agent", agent)

    def runs(words: tuple[str, ...]) -> bool:
        def act() -> object:
            return uwf(*words, **now)

        return killed_at_work(act) if place == "at work" else killed_second(PLACES[place], act)

    kills = len([*takewhile(runs, [first, *[("plan", "resume")] * MOST])])

    assert len(ASKED) - 1 <= kills < MOST
    assert (uwf.place / "asked").read_text().split() == ASKED
    told = json.loads((uwf.place / STATE_FILE).read_text())
    assert told["phase"] == "completed"
    nobody = {"driver": None, "address": None, "port": None}
    assert uwf.json("plan", "status") == told | nobody
    check_log(uwf, told["thread"])


def check_log(uwf: Uwf, thread: str) -> None:
    store = open_store(uwf.session.repo or "")
    assert verify(store, []).troubles == ()
    story = read_story(store, resolve_head(store, thread).commit)
    logs = sorted((uwf.place / MEMORY_DIR).iterdir())
    assert [log.suffix for log in logs] == [".md"] * len(logs)
    entries = re.findall(r"^commit (.*)$", "".join(log.read_text() for log in logs), re.MULTILINE)
    assert entries == [happened.commit[:10] for happened in story]
    assert [each.role for each in story if each.event == "step"] == STEPS
    assert [each.role for each in story if each.event == "attempt"] == ["planner", "executor"]
