from pathlib import Path

import pytest
from cas_nodes import keep_alone
from commands.world import DEMO, World
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.commands.workflow import build
from uwf_git.commands.workflow.build import validate_workflow
from uwf_git.commands.workflow.find import (
    WorkflowRemoved,
    find_shadowed,
    find_shipped_workflow,
    find_workflow,
)
from uwf_git.commands.workflow.history import remove_workflow
from uwf_git.store.nodes.tree import MissingNode
from uwf_git.store.objects.pack_file import ByteCache
from uwf_git.store.workflows import find_shipped, list_shipped


def test_hash_of_any_version_is_understood(world: World) -> None:
    first = world.put()
    world.put(DEMO.replace("Writes.", "Writes well."))

    for text in (first.workflow, first.workflow.lower(), first.workflow[:10]):
        assert find_workflow(world.store, text).workflow.hash == first.workflow


def test_ambiguous_version_is_refused(world: World) -> None:
    names = [world.put(DEMO.replace("Writes.", f"Writes {n}.")).workflow for n in range(17)]
    prefix = next(name[0] for name in names if sum(other[0] == name[0] for other in names) > 1)

    with refuses("ambiguous-node") as caught:
        find_workflow(world.store, prefix)

    assert caught.value.facts["matches"] == sorted(n for n in names if n[0] == prefix)


@pytest.mark.parametrize(
    "text", ["", " ", "../demo", "demo/", "refs/workflows/demo", "a\nb", "\udcff", "-x", "x" * 9999]
)
def test_what_is_no_name_is_no_workflow(text: str, world: World) -> None:
    world.put()

    with refuses("no-such-workflow"):
        find_workflow(world.store, text)


def test_workflow_that_only_a_thread_holds_is_found_by_its_hash(world: World) -> None:
    workflow = world.put().workflow
    world.start()
    seen = world.store.refs.find("refs/workflows/demo")
    assert seen is not None
    world.store.refs.delete("refs/workflows/demo", seen=seen)

    assert find_workflow(world.store, workflow[:9]).workflow.name == "demo"


def test_node_that_is_no_workflow_is_not_found(world: World) -> None:
    thread = world.begun()

    with refuses("no-such-workflow"):
        find_workflow(world.store, world.snapshot(thread).record.node)


def test_name_is_found_in_either_spelling_of_its_letters(world: World) -> None:
    world.put(DEMO.replace("name: demo", "name: caf\u00e9"))

    assert find_workflow(world.store, "cafe\u0301").workflow.name == "caf\u00e9"


@pytest.mark.parametrize("has_index", [True, False])
def test_old_version_is_found_with_all_its_parts(world: World, *, has_index: bool) -> None:
    world.put()
    old = find_workflow(world.store, "demo")
    world.put(DEMO.replace("Writes.", "Writes well."))
    if not has_index:
        # A folder in its place, so that the file cannot be made.
        Path(world.store.path, "uwf", "nodes.sqlite").mkdir(parents=True)

    assert find_workflow(world.store, old.workflow.hash) == old


def test_workflow_with_a_missing_part_names_it(world: World) -> None:
    world.put()
    workflow, *parts = find_workflow(world.store, "demo").closure
    store = fresh_store()
    keep_alone(store, "refs/threads/01J00000000000000000000001", workflow)

    with pytest.raises(MissingNode) as caught:
        find_workflow(store, workflow.hash)
    assert caught.value.facts["node"] in {part.hash for part in parts}


def local(folder: Path, text: str, name: str = "demo") -> Path:
    path = folder / ".workflows" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_file_of_the_project_stands_before_the_registered_workflow(
    world: World, tmp_path: Path
) -> None:
    put = world.put()
    path = local(tmp_path, DEMO.replace("Writes.", "Writes here."))

    found = find_workflow(world.store, "demo", cwd=str(tmp_path))

    assert (found.file, found.shadows) == (str(path), put.workflow)
    assert found.workflow.hash != put.workflow
    assert found.closure[0].hash == found.workflow.hash
    assert find_workflow(world.store, "demo").workflow.hash == put.workflow
    assert find_workflow(world.store, put.workflow, cwd=str(tmp_path)).file is None


def test_hash_of_a_file_of_the_project_is_understood_as_the_list_shows_it(
    world: World, tmp_path: Path
) -> None:
    local(tmp_path, "name: broken\n", "broken")
    path = local(tmp_path, DEMO)
    hash_ = find_workflow(world.store, "demo", cwd=str(tmp_path)).workflow.hash

    assert find_workflow(world.store, hash_[:9], cwd=str(tmp_path)).file == str(path)
    with refuses("no-such-workflow"):
        find_workflow(world.store, hash_)


def test_name_of_a_file_of_the_project_is_offered(world: World, tmp_path: Path) -> None:
    local(tmp_path, DEMO)

    with refuses("no-such-workflow") as caught:
        find_workflow(world.store, "dmeo", cwd=str(tmp_path))

    assert "did you mean demo?" in (caught.value.hint or "")


def test_removed_or_damaged_workflow_is_nothing_that_a_file_stands_before(
    world: World, tmp_path: Path
) -> None:
    world.put()
    remove_workflow(world.store, world.caller, "demo")
    local(tmp_path, DEMO)

    assert find_workflow(world.store, "demo", cwd=str(tmp_path)).shadows is None
    Path(world.store.path, "refs", "workflows", "demo").write_text("garbage\n")
    assert find_shadowed(world.store, "demo") is None
    assert find_workflow(world.store, "demo", cwd=str(tmp_path)).shadows is None


def test_shipped_workflow_is_found_after_all_others(world: World, tmp_path: Path) -> None:
    found = find_workflow(world.store, "check-repo", cwd=str(tmp_path))
    shipped = find_shipped("check-repo")
    assert shipped is not None
    assert (found.workflow.name, found.file, found.shadows) == ("check-repo", shipped.path, None)
    with refuses("no-such-workflow", match="there is no workflow check-repo"):
        find_workflow(world.store, "check-repo")
    with refuses("no-such-workflow") as caught:
        find_workflow(world.store, "chek-repo", cwd=str(tmp_path))
    assert "did you mean check-repo?" in (caught.value.hint or "")

    put = world.put(DEMO.replace("name: demo", "name: check-repo"))
    registered = find_workflow(world.store, "check-repo", cwd=str(tmp_path))
    assert (registered.workflow.hash, registered.file) == (put.workflow, None)
    remove_workflow(world.store, world.caller, "check-repo")
    with pytest.raises(WorkflowRemoved):
        find_workflow(world.store, "check-repo", cwd=str(tmp_path))


@pytest.mark.parametrize("name", [file.name for file in list_shipped()])
def test_shipped_workflow_is_valid_and_not_checked_again(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = find_shipped(name)
    assert shipped is not None
    source = Path(shipped.path).read_bytes()
    checked = validate_workflow(source, path=shipped.path, shown=name)
    assert (checked.problems, checked.warnings) == ((), ())
    assert checked.built is not None

    monkeypatch.setattr(build, "run_limited", None)
    monkeypatch.setattr(build, "_checked", ByteCache(1))

    assert find_shipped_workflow(world.store, name).workflow.hash == checked.built.node.hash
