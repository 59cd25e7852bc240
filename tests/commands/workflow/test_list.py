from collections.abc import Callable
from pathlib import Path

from commands.world import DEMO, World

from uwf_git.commands.workflow.find import list_all_workflows, list_workflows
from uwf_git.commands.workflow.history import remove_workflow
from uwf_git.store.workflows import list_shipped


def test_row_describes_a_workflow(world: World) -> None:
    put = world.put()

    row = list_workflows(world.store)[0]

    assert row.pop("lastUpdateTime") > 0
    assert row == {
        "name": "demo",
        "workflow": put.workflow,
        "description": "Write until somebody is content.",
        "roles": ["writer", "checker"],
    }


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


def test_files_of_the_project_come_first_and_name_what_they_hide(
    world: World, tmp_path: Path
) -> None:
    put = world.put()
    world.put(DEMO.replace("name: demo", "name: other"))
    (tmp_path / ".workflows").mkdir()
    for name, text in {"demo": DEMO + "# here\n", "broken": "name: broken\n"}.items():
        (tmp_path / ".workflows" / f"{name}.yaml").write_text(text)

    broken, demo, other = list_workflows(world.store, cwd=str(tmp_path))

    assert (demo["name"], demo["workflow"]) == ("demo", put.workflow)
    assert demo["file"] == str(tmp_path / ".workflows" / "demo.yaml")
    assert demo["shadows"] == put.workflow
    assert "2 problems" in broken["error"]
    assert "shadows" not in broken
    assert (other["name"], "file" in other) == ("other", False)
    assert list_workflows(world.store, cwd=str(tmp_path), limit=2) == [broken, demo]


def test_shipped_workflows_come_last_unless_another_hides_them(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / ".workflows").mkdir()
    (tmp_path / ".workflows" / "develop.yaml").write_text(DEMO.replace("demo", "develop"))
    world.put(DEMO.replace("name: demo", "name: solve-issue"))
    world.put(DEMO.replace("name: demo", "name: code-review"))
    remove_workflow(world.store, world.caller, "code-review")

    cwd = str(tmp_path)
    rows = list_all_workflows(world.store, cwd=cwd)

    hidden = {"develop", "solve-issue", "code-review"}
    others = [each for each in list_shipped() if each.name not in hidden]
    assert [row["name"] for row in rows[:2]] == ["develop", "solve-issue"]
    assert [(row["name"], row["file"]) for row in rows[2:]] == [each[:2] for each in others]
    assert list_all_workflows(world.store, cwd=cwd, limit=len(rows)) == rows
    assert list_all_workflows(world.store, cwd=cwd, limit=2) == rows[:2]
    assert [row["name"] for row in list_workflows(world.store)] == ["solve-issue"]
