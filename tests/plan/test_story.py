"""Stories of real threads."""

from pathlib import Path

import pytest
from plan.played import start_task

from uwf_git import TaskHandle
from uwf_git.plan.phases import fold_story, read_story
from uwf_git.store.store import open_store
from uwf_git.store.threads.heads import resolve_head


@pytest.fixture
def task(tmp_path: Path) -> TaskHandle:
    """Return a thread whose executor crashes, is rejected, and then carries two plans out."""
    return start_task(tmp_path / "store.git", tmp_path, create=True)


def test_story_of_a_thread(task: TaskHandle, tmp_path: Path) -> None:
    task.run()
    task.retry("use pip")
    task.run()
    store = open_store(str(tmp_path / "store.git"))
    tip = resolve_head(store, task.task_id).commit

    story = read_story(store, tip)
    states = [fold_story(story[:end]) for end in range(1, len(story) + 1)]

    assert [(each.event, each.role) for each in story] == [
        ("start", ""),
        ("step", "planner"),
        ("step", "plan-verifier"),
        ("step", "plans"),
        ("attempt", "executor"),
        ("retry", ""),
        ("step", "executor"),
        ("step", "verifier"),
        ("step", "executor"),
        ("step", "verifier"),
        ("step", "executor"),
        ("step", "verifier"),
        ("end", ""),
    ]
    assert [(state.phase, state.done, state.tries) for state in states] == [
        ("planning", 0, 0),
        ("planning", 0, 0),
        ("executing", 0, 0),
        ("executing", 0, 0),
        ("waiting_human", 0, 1),
        ("executing", 0, 0),
        ("executing", 0, 0),
        ("executing", 0, 1),
        ("executing", 0, 1),
        ("executing", 1, 0),
        ("executing", 1, 0),
        ("executing", 2, 0),
        ("completed", 2, 0),
    ]
    assert (states[0].task, states[0].max_retries) == ("做一个网站", 2)
    assert story[4].reason.endswith("no key")
    assert story[5].reason == "use pip"
    assert read_story(store, tip, after=story[4].commit) == story[5:]
    assert read_story(store, tip, after=story[-1].commit) == []
