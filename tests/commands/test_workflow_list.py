from collections.abc import Callable
from pathlib import Path

from commands.world import DEMO, World

from uwf_git.commands.workflow_list import list_workflows


def test_workflow_that_was_put_last_comes_first(world: World) -> None:
    for name in ("b", "c", "a"):
        world.put(DEMO.replace("name: demo", f"name: {name}"))
    world.put(DEMO.replace("name: demo", "name: b").replace("Writes.", "Writes well."))

    assert [row["name"] for row in list_workflows(world.store)] == ["b", "a", "c"]
    assert [row["name"] for row in list_workflows(world.store, limit=1)] == ["b"]


def test_row_tells_what_a_workflow_is(world: World) -> None:
    put = world.put()

    row = list_workflows(world.store)[0]

    assert row.pop("lastUpdateTime") > 0
    assert row == {
        "name": "demo",
        "workflow": put.workflow,
        "description": "Write until somebody is content.",
        "roles": ["writer", "checker"],
    }


def test_empty_registry_has_none(world: World) -> None:
    assert list_workflows(world.store) == []


def test_damaged_workflow_is_one_row_that_says_so(world: World, git: Callable[..., str]) -> None:
    world.put()
    world.put(DEMO.replace("name: demo", "name: other"))
    store = Path(world.store.path)
    tree = git("rev-parse", "refs/workflows/demo^{tree}", cwd=store)
    for name, made in {
        "bare": git("commit-tree", tree.strip(), cwd=store, stdin="no trailers\n"),
        "nothing": "0" * 39 + "1\n",
        "garbage": "garbage\n",
    }.items():
        (store / "refs" / "workflows" / name).write_text(made)
    world.reopen()

    rows = {row["name"]: row for row in list_workflows(world.store)}

    assert set(rows) == {"demo", "other", "bare", "nothing", "garbage"}
    assert all(rows[name]["error"] for name in ("bare", "nothing", "garbage"))
    assert all("error" not in rows[name] for name in ("demo", "other"))
