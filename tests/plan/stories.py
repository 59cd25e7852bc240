"""Stories of plan threads, written as lines: what happened, and the status afterwards."""

from typing import Any

from uwf_git.model.thread import Event, Status
from uwf_git.plan.phases import Happened

PLANS = {
    "plans": [
        {"file": "docs/plans/000-准备.md", "number": 0, "name": "准备"},
        {"file": "docs/plans/001-b.md", "number": 1, "name": "b"},
    ]
}
YES: dict[str, Any] = {"verified": True}
NO: dict[str, Any] = {"verified": False, "issues": ["缺少测试", "x"], "suggestion": "write one"}
DONE: dict[str, Any] = {
    "completed": True,
    "summary": "did it",
    "files_created": ["a", "b"],
    "files_modified": [],
    "issues": ["slow"],
    "next_steps": ["deploy"],
}

# 2026-11-23 14:32:07 UTC, and a second more for each.
BEGIN_MS = 1_795_444_327_000


class Story:
    """Collects what happens."""

    def __init__(self, task: str = "build it") -> None:
        self.told: list[Happened] = []
        self.add("start", task=task)

    def add(self, event: Event, status: Status = "ready", **more: Any) -> "Story":
        """Add one transition."""
        number = len(self.told)
        told = Happened(f"{number:010x}{0:030x}", BEGIN_MS + 1000 * number, event, status)
        self.told.append(told._replace(**more))
        return self

    def step(self, role: str, meta: Any = None) -> "Story":
        """Add a step of *role*."""
        return self.add("step", role=role, agent="uwf-claude", meta=DONE if meta is None else meta)

    def crash(self, role: str, status: Status = "ready", *, counts: bool = True) -> "Story":
        """Add a failed attempt of *role*."""
        told = {"role": role, "agent": "uwf-claude", "reason": "exit status 1", "counts": counts}
        return self.add("attempt", status, **told)

    def planned(self) -> "Story":
        """Add all until the first plan is carried out."""
        return self.step("planner").step("plan-verifier", YES).step("plans", PLANS)

    def plan(self) -> "Story":
        """Add a plan that is carried out at the first try."""
        return self.step("executor").step("verifier", YES)
