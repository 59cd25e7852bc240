from collections.abc import Callable
from pathlib import Path

import pytest
from commands.world import DEMO, World
from refusing import refuses

from uwf_git.commands.workflow.build import PutWorkflow, put_workflow
from uwf_git.model.definition.definition import InvalidWorkflow
from uwf_git.model.yaml_include import BadIncludes
from uwf_git.store.store import create_store
from uwf_git.store.trust import is_trusted
from uwf_git.store.workflows import list_names, list_versions


@pytest.mark.parametrize("twin", ["Demo", "DEMO"])
def test_name_that_differs_only_by_case_is_refused(twin: str, world: World) -> None:
    world.put()

    with refuses("case-twin", match=f"{twin} differs from demo only by case"):
        world.put(DEMO.replace("name: demo", f"name: {twin}"))

    assert list_names(world.store) == ["demo"]


@pytest.mark.parametrize("condition", ["(" * 5000, "1" + "+1" * 9000, "a." * 9000 + "b"])
def test_condition_that_is_only_there_to_hurt_is_refused(condition: str, world: World) -> None:
    with pytest.raises(InvalidWorkflow, match="condition"):
        world.put(DEMO.replace("meta.ok = false", f"'{condition}'"))


def test_version_that_came_in_between_is_not_buried_and_counts_if_it_is_the_same(
    world: World,
) -> None:
    world.put()
    other = DEMO.replace("Writes.", "Writes well.")
    ours = DEMO.replace("Writes.", "Writes badly.")

    def now_ms() -> int:
        # The clock is read after the registry.
        if len(list(list_versions(world.store))) == 1:
            world.put(other)
        return 1_760_000_000_000

    late = world.caller._replace(now_ms=now_ms)
    with refuses("workflow-moved"):
        put_workflow(world.store, late, ours.encode())

    assert world.put(other).changed is False
    world.store = create_store(str(world.place / "other.git"))
    world.put()
    assert put_workflow(world.store, late, other.encode()).changed is False


def test_relative_paths_are_those_of_the_work_directory(world: World) -> None:
    there = world.place / "there"
    source = (DEMO + "defaultAgent: ./agent\n").encode()
    put_workflow(world.store, world.caller, source, workdir="there")
    assert is_trusted(world.store, {"command": "./agent"}, str(there))
    assert not is_trusted(world.store, {"command": "./agent"}, str(world.place))
    put_workflow(world.store, world.caller, source)
    assert is_trusted(world.store, {"command": "./agent"}, str(world.place))


INCLUDING = DEMO.replace("systemPrompt: Check.", "systemPrompt: !include prompts/check.md")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with a file to include."""
    (tmp_path / "flows" / "prompts").mkdir(parents=True)
    (tmp_path / "flows" / "prompts" / "check.md").write_bytes(b"Check.\r\n")
    return tmp_path / "flows"


def put_in(world: World, folder: Path, source: str = INCLUDING) -> PutWorkflow:
    path = str(folder / "demo.yaml")
    return put_workflow(world.store, world.caller, source.encode(), path=path)


def test_changed_included_file_is_a_new_version(world: World, folder: Path) -> None:
    first = put_in(world, folder)
    assert put_in(world, folder) == first._replace(changed=False)

    (folder / "prompts" / "check.md").write_text("Check well.\n")
    second = put_in(world, folder)

    assert second.changed
    assert second.workflow != first.workflow


def test_tree_of_a_version_can_be_put_again(
    world: World, folder: Path, tmp_path: Path, git: Callable[..., str]
) -> None:
    first = put_in(world, folder)
    tree = ("--git-dir", world.store.path, "--work-tree", str(tmp_path / "out"))
    (tmp_path / "out").mkdir()
    git(*tree, "checkout", "-f", "refs/workflows/demo", "--", ".", cwd=tmp_path / "out")

    source = (tmp_path / "out" / "workflow.yaml").read_text()
    again = put_workflow(
        world.store, world.caller, source.encode(), path=str(tmp_path / "out" / "workflow.yaml")
    )

    assert again == first._replace(changed=False)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "link", "prompts/../../secret"])
def test_nothing_outside_of_the_folder_is_included(path: str, world: World, folder: Path) -> None:
    (folder.parent / "secret").write_text("secret")
    (folder / "link").symlink_to("../secret")

    with pytest.raises(BadIncludes):
        put_in(world, folder, DEMO.replace("Check.", f"!include {path}"))
    assert list_names(world.store) == []
