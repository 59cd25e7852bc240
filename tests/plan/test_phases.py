import pytest
from plan.stories import BEGIN_MS, NO, PLANS, YES, Story

from uwf_git.plan.phases import (
    IDLE,
    PlanState,
    build_state_document,
    fold_story,
    list_failures,
    list_plan_rows,
    list_plans,
)
from uwf_git.plan.project_files import PlanFile

WHERE = {"thread": "T", "repo": "/s.git", "address": "127.0.0.1", "port": 9527}
FIRST, SECOND = list_plans(PLANS)


def state(story: Story) -> PlanState:
    return fold_story(story.told)


def summary(story: Story) -> tuple[str, int | None, int, str]:
    """Return the phase, the number of the plan, the failed tries and the error."""
    now = state(story)
    return now.phase, None if now.current is None else now.current.number, now.tries, now.error


REJECTED = "缺少测试; x; write one"

WORDS = [
    ("begun", Story(), ("planning", None, 0, "")),
    ("planned", Story().step("planner"), ("planning", None, 0, "")),
    (
        "rejected",
        Story().step("planner").step("plan-verifier", NO),
        ("planning", None, 1, REJECTED),
    ),
    (
        "plans follow",
        Story().step("planner").step("plan-verifier", YES),
        ("executing", None, 0, ""),
    ),
    ("first plan", Story().planned(), ("executing", 0, 0, "")),
    ("work done", Story().planned().step("executor"), ("executing", 0, 0, "")),
    ("second plan", Story().planned().plan(), ("executing", 1, 0, "")),
    ("crashed", Story().planned().plan().crash("executor"), ("executing", 1, 1, "exit status 1")),
    (
        "a verifier that breaks is no try",
        Story().planned().step("executor").crash("verifier"),
        ("executing", 0, 0, "exit status 1"),
    ),
    (
        "an interruption is no try",
        Story().planned().crash("executor", counts=False),
        ("executing", 0, 0, "exit status 1"),
    ),
    (
        "used up",
        Story().planned().crash("executor").crash("executor").crash("executor", "failed"),
        ("waiting_human", 0, 3, "exit status 1"),
    ),
    (
        "continued",
        Story().planned().crash("executor", "failed").add("retry", reason="use pip"),
        ("executing", 0, 0, "exit status 1"),
    ),
    (
        "asked",
        Story().planned().add("wait", "waiting", role="executor"),
        ("waiting_human", 0, 0, ""),
    ),
    (
        "limit",
        Story().add("wait", "waiting", role="planner", until_ms=9),
        ("planning", None, 0, ""),
    ),
    ("paused", Story().add("pause", "paused", paused_from="ready"), ("planning", None, 0, "")),
    (
        "paused after a failure",
        Story().crash("planner", "failed").add("pause", "paused", paused_from="failed"),
        ("waiting_human", None, 1, "exit status 1"),
    ),
    (
        "stopped",
        Story().planned().add("kill", "killed", reason="enough"),
        ("failed", 0, 0, "enough"),
    ),
    (
        "completed",
        Story().planned().plan().plan().add("end", "completed"),
        ("completed", None, 0, ""),
    ),
    (
        "taken back",
        Story().planned().plan().add("poke"),
        ("executing", 0, 0, ""),
    ),
    (
        "a plan is not done because an earlier one was",
        Story().planned().plan().crash("executor").crash("executor", "failed"),
        ("waiting_human", 1, 2, "exit status 1"),
    ),
]


@pytest.mark.parametrize(
    ("story", "expected"), [row[1:] for row in WORDS], ids=[w[0] for w in WORDS]
)
def test_words_of_the_seed(story: Story, expected: tuple[str, int | None, int, str]) -> None:
    assert summary(story) == expected


def test_each_failed_try_says_why() -> None:
    stuck = Story().planned().crash("executor").step("executor").step("verifier", NO)
    assert list_failures(state(stuck)) == ["try 1: exit status 1", f"try 2: rejected: {REJECTED}"]

    broken = Story().planned().step("executor").crash("verifier", "failed")
    assert list_failures(state(broken)) == ["then: exit status 1"]
    assert list_failures(state(Story().planned())) == []


def test_person_decides_about_what_has_failed_unless_it_is_paused() -> None:
    failed = Story().planned().crash("executor", "failed")
    assert state(failed).is_stuck
    assert not state(failed.add("pause", "paused", paused_from="failed")).is_stuck
    assert not state(Story().add("wait", "waiting", role="planner")).is_stuck


def test_without_a_planner_it_executes_from_the_start() -> None:
    story = Story()
    story.told[0] = story.told[0]._replace(has_plans=True)

    assert summary(story) == ("executing", None, 0, "")
    assert summary(story.step("plans", PLANS).plan()) == ("executing", 1, 0, "")


def test_story_may_be_read_in_parts() -> None:
    told = Story().planned().plan().crash("executor").add("poke").plan().told

    for cut in range(len(told)):
        whole = build_state_document(fold_story(told), WHERE)
        assert build_state_document(fold_story(told[cut:], fold_story(told[:cut])), WHERE) == whole


def test_no_thread_is_idle() -> None:
    document = build_state_document(IDLE, {})

    assert document.pop("phase") == "idle"
    assert document.pop("retryCount") == 0
    assert document.pop("maxRetries") == 3
    assert set(document.values()) == {None}


def test_state_document() -> None:
    story = Story("做一个网站").planned().crash("executor")
    story.add("pause", "paused", paused_from="ready", max_retries=5)

    assert build_state_document(state(story), WHERE) == {
        "phase": "executing",
        "currentPlan": "000-准备",
        "retryCount": 1,
        "maxRetries": 5,
        "task": "做一个网站",
        "error": "exit status 1",
        **WHERE,
        "updated": "2026-11-23T14:32:12+00:00",
        "paused": True,
    }
    assert BEGIN_MS // 1000 == 1_795_444_327


def test_end_of_a_limit_is_told() -> None:
    limited = Story().add("wait", "waiting", role="planner", until_ms=BEGIN_MS)

    assert build_state_document(state(limited), WHERE)["until"] == "2026-11-23T14:32:07+00:00"


EXTRA = PlanFile("docs/plans/002-c.md", 2, "c")


@pytest.mark.parametrize(
    ("story", "words"),
    [
        (Story(), {2: "pending"}),
        (Story().planned(), {0: "executing", 1: "pending", 2: "pending"}),
        (Story().planned().plan(), {0: "completed", 1: "executing", 2: "pending"}),
        (
            Story().planned().plan().crash("executor", "failed"),
            {0: "completed", 1: "failed", 2: "pending"},
        ),
        (
            Story().planned().add("kill", "killed"),
            {0: "failed", 1: "pending", 2: "pending"},
        ),
        (
            Story().planned().plan().plan().add("end", "completed"),
            {0: "completed", 1: "completed", 2: "pending"},
        ),
    ],
)
def test_words_of_plans(story: Story, words: dict[int, str]) -> None:
    rows = list_plan_rows(state(story), [EXTRA, *([FIRST] if 0 in words else [])])

    assert {row["number"]: row["status"] for row in rows} == words
    assert [row["number"] for row in rows if row.get("missing")] == ([1] if 1 in words else [])
    assert [row["number"] for row in rows if row.get("tracked") is False] == [2]


@pytest.mark.parametrize("meta", [None, [], {}, {"plans": {}}, {"plans": [1, {"file": 1}, {}]}])
def test_list_that_is_none(meta: object) -> None:
    assert list_plans(meta) == ()
    assert SECOND.name == "b"
