"""Files of a project. Other tools searched above the repository, or listed what cannot start."""

import os
from pathlib import Path

import pytest
from commands.world import DEMO, World
from refusing import refuses

from uwf_git.commands.workflow.find import (
    BadLocalWorkflow,
    build_local,
    find_local,
    find_workflow,
    list_local,
    list_workflows,
)
from uwf_git.store.workflows import list_names


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a repository below a folder that has workflows as well, with folders in it."""
    root = tmp_path / "outer" / "project"
    (root / ".git").mkdir(parents=True)
    (root / "src" / "deep").mkdir(parents=True)
    write(tmp_path / "outer", "above")
    write(root, "demo")
    return root


def write(folder: Path, name: str, text: str | None = None, *, suffix: str = ".yaml") -> Path:
    workflows = folder / ".workflows"
    workflows.mkdir(exist_ok=True)
    path = workflows / f"{name}{suffix}"
    path.write_text(DEMO.replace("name: demo", f"name: {name}") if text is None else text)
    return path


def names(cwd: Path) -> list[str]:
    return [file.name for file in list_local(str(cwd))]


def test_files_are_found_from_below_and_never_above_the_repository(project: Path) -> None:
    write(project / "src", "other")

    assert names(project / "src" / "deep") == ["demo", "other"]
    assert names(project) == ["demo"]
    assert names(project.parent) == ["above"]
    assert find_local(str(project), "above") is None


def test_linked_worktree_and_submodule_are_repositories_of_their_own(project: Path) -> None:
    (project / "src" / ".git").write_text("gitdir: ../.git/modules/src\n")
    write(project / "src", "other")

    assert names(project / "src" / "deep") == ["other"]


def test_list_and_find_agree_on_every_file(world: World, project: Path) -> None:
    write(project, "broken", "name: broken\n")
    write(project, "misnamed", DEMO)
    write(project, "two words", DEMO)
    write(project, "short", suffix=".yml")
    (project / ".workflows" / "link.yaml").symlink_to(project.parent / ".workflows" / "above.yaml")
    (project / ".workflows" / "folder.yaml").mkdir()
    (project / ".workflows" / ".hidden.yaml").write_text(DEMO)
    (project / ".workflows" / "notes.md").write_text("no workflow")
    os.mkfifo(project / ".workflows" / "pipe.yaml")
    cwd = str(project / "src")

    rows = {row["name"]: row for row in list_workflows(world.store, cwd=cwd)}

    assert sorted(rows) == [
        *("broken", "demo", "folder", "link", "misnamed", "pipe", "short", "two words"),
    ]
    for name, row in rows.items():
        if "error" not in row:
            found = find_workflow(world.store, name, cwd=cwd)
            assert (found.workflow.hash, found.file) == (row["workflow"], row["file"])
        else:
            with refuses(BadLocalWorkflow, "no-such-workflow"):
                find_workflow(world.store, name, cwd=cwd)
    assert [name for name, row in rows.items() if "error" not in row] == ["demo", "short"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: demo\n", "the workflow has 2 problems"),
        ("name: x: y", "line 1"),
        (DEMO.replace("name: demo", "name: other"), "its `name` is other"),
        (DEMO.replace("Check.", "!include ../../up.md"), "outside the folder"),
    ],
)
def test_invalid_file_is_reported_with_its_path(text: str, said: str, project: Path) -> None:
    path = write(project, "demo", text)
    found = find_local(str(project), "demo")
    assert found is not None

    with pytest.raises(BadLocalWorkflow, match=said) as caught:
        build_local(found)

    assert caught.value.message.startswith(f"{path}: ")
    assert all(each["file"] == str(path) for each in caught.value.facts["problems"])
    assert caught.value.hint


def test_no_link_leads_out_of_the_project(project: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(DEMO.replace("name: demo", "name: secret"))
    (project / ".workflows" / "secret.yaml").symlink_to(tmp_path / "secret.yaml")
    (project / "src" / ".workflows").symlink_to(project.parent / ".workflows")

    for name in ("secret", "above"):
        found = find_local(str(project / "src"), name)
        assert found is not None
        with pytest.raises(BadLocalWorkflow, match="leads out of"):
            build_local(found)


def test_link_within_the_project_is_followed(project: Path) -> None:
    kept = project / "kept.yaml"
    kept.write_text(DEMO.replace("name: demo", "name: kept"))
    (project / ".workflows" / "kept.yaml").symlink_to("../kept.yaml")
    found = find_local(str(project), "kept")

    assert found is not None
    assert build_local(found).name == "kept"


def test_local_file_includes_files_below_its_folder(project: Path) -> None:
    (project / ".workflows" / "prompts").mkdir()
    (project / ".workflows" / "prompts" / "check.md").write_text("Check.")
    write(project, "demo", DEMO.replace("Prompt: Check.", "Prompt: !include prompts/check.md"))
    found = find_local(str(project), "demo")

    assert found is not None
    assert list(build_local(found).included) == ["prompts/check.md"]


def test_thread_of_a_local_file_carries_it_and_the_registry_gets_nothing(
    world: World, project: Path
) -> None:
    write(project, "demo", DEMO + "defaultAgent: theirs\n")
    world.caller = world.caller._replace(cwd=str(project / "src"))

    thread = world.start()

    assert list_names(world.store) == []
    snapshot = world.snapshot(thread)
    found = find_workflow(world.store, snapshot.record.workflow)
    assert (found.workflow.name, found.file) == ("demo", None)
    # A checkout that names an agent does not make it trusted.
    assert '{"command":"theirs"}' not in world.store.config.get_all("uwf.trustedAgent")
    (project / ".workflows" / "demo.yaml").unlink()
    assert world.step(thread).role == "writer"
