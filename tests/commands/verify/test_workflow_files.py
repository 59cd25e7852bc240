"""Files beside the nodes of a version that are not those it includes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands.forging import add, forge, holds, points, tip_of
from commands.world import DEMO, World
from dulwich.objects import Blob, ObjectID, Tree

from uwf_git.commands.verify.puts import check_puts
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.store.store import Store

REF = "refs/workflows/demo"
SOURCE = DEMO.replace("Prompt: Check.", "Prompt: !include prompts/check.md")


@pytest.fixture
def store(world: World, tmp_path: Path) -> Store:
    """Put a workflow that includes a file."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "check.md").write_text("Check.")
    put_workflow(world.store, world.caller, SOURCE.encode(), path=str(tmp_path / "demo.yaml"))
    return world.store


def told(store: Store) -> list[str]:
    return [each.message for each in check_puts(store, [(REF, tip_of(store, REF), None)])]


@pytest.mark.parametrize("name", ["extra.md", "prompts/extra.md", "other/deep/extra.md"])
def test_file_that_nothing_includes_is_reported(name: str, store: Store) -> None:
    forge(store, REF, {0: holds(store, name, b"anything")})

    assert told(store) == [
        f"the commit has {name}, which does not belong there: no file includes it"
    ]


def test_missing_included_file_is_reported(store: Store) -> None:
    forge(store, REF, {0: holds(store, "prompts", None)})

    (message,) = told(store)
    assert message.startswith("workflow.yaml:")
    assert "!include prompts/check.md: it is not in the same commit" in message


def test_source_that_cannot_be_read_keeps_no_files_beside_it(store: Store) -> None:
    forge(store, REF, {0: holds(store, "workflow.yaml", b"a: [")})

    (message,) = told(store)
    assert message.startswith("workflow.yaml:1: ")


def test_source_that_includes_nothing_is_not_judged(world: World) -> None:
    world.put()
    forge(world.store, REF, {0: holds(world.store, "workflow.yaml", b"\xff[")})

    assert told(world.store) == []


@pytest.mark.parametrize("mode", [0o120000, 0o100755, 0o160000])
def test_link_program_and_submodule_are_reported(mode: int, store: Store) -> None:
    blob = add(store, Blob.from_string(b"/etc/passwd"))
    forge(store, REF, {0: points(store, "link.md", blob, mode=mode)})

    assert told(store) == [f"link.md has mode {mode:o}, and a file has 100644"]


def test_empty_and_missing_folders_are_reported(store: Store) -> None:
    forge(store, REF, {0: points(store, "empty", add(store, Tree()), mode=0o40000)})
    assert told(store) == ["the commit has empty, an empty folder"]

    forge(store, REF, {0: points(store, "empty", ObjectID(b"1" * 40), mode=0o40000)})
    assert "empty cannot be read" in told(store)[0]


def nested(store: Store) -> ObjectID:
    tree = add(store, Tree())
    for _level in range(2000):
        outer = Tree()
        outer[b"d"] = (0o40000, tree)
        tree = add(store, outer)
    return tree


def crowded(store: Store) -> ObjectID:
    blob = add(store, Blob.from_string(b""))
    tree = Tree()
    for number in range(5000):
        tree[b"%d" % number] = (0o100644, blob)
    return add(store, tree)


@pytest.mark.parametrize(
    ("make", "said"), [(nested, "nested too deeply"), (crowded, "more than 100 files")]
)
def test_tree_that_is_only_there_to_hurt_is_given_up(
    make: Callable[[Store], ObjectID], said: str, store: Store
) -> None:
    forge(store, REF, {0: points(store, "hurt", make(store), mode=0o40000)})

    (message,) = told(store)
    assert said in message
