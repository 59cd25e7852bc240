"""Files of a project. Other tools searched above the repository, or listed what cannot start."""

import os
from pathlib import Path

import pytest
from cas_nodes import keep_alone
from commands.world import DEMO, World
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.commands.workflow import build
from uwf_git.commands.workflow.build import validate_workflow
from uwf_git.commands.workflow.find import (
    BadLocalWorkflow,
    WorkflowRemoved,
    build_local,
    find_local,
    find_shadowed,
    find_shipped_workflow,
    find_workflow,
    list_all_workflows,
    list_local,
    list_workflows,
)
from uwf_git.commands.workflow.history import remove_workflow
from uwf_git.model.names import ThreadId
from uwf_git.store.nodes import MissingNode
from uwf_git.store.objects.commit import body_of
from uwf_git.store.objects.pack_file import ByteCache
from uwf_git.store.workflows import (
    find_shipped,
    find_version,
    list_names,
    list_shipped,
    list_versions,
)


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


def test_workflow_that_only_a_thread_holds_is_found_by_its_hash(world: World) -> None:
    workflow = world.put().workflow
    world.start()
    seen = world.store.refs.find("refs/workflows/demo")
    assert seen is not None
    world.store.refs.delete("refs/workflows/demo", seen=seen)

    assert find_workflow(world.store, workflow[:9]).workflow.name == "demo"


def test_node_that_is_no_workflow_is_not_found(world: World, thread: ThreadId) -> None:
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
    local(tmp_path, "name: asks\nroot: {type: workflow, use: beef}\n", "asks")
    path = local(tmp_path, DEMO)
    hash_ = find_workflow(world.store, "demo", cwd=str(tmp_path)).workflow.hash

    assert find_workflow(world.store, hash_[:9], cwd=str(tmp_path)).file == str(path)
    with refuses("no-such-workflow"):
        find_workflow(world.store, hash_)
    with refuses("bad-local-workflow", match="no workflow beef"):
        find_workflow(world.store, "asks", cwd=str(tmp_path))


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
    checked = validate_workflow(Path(shipped.path).read_bytes(), path=shipped.path, shown=name)
    assert (checked.problems, checked.warnings) == ((), ())
    assert checked.built is not None

    monkeypatch.setattr(build, "run_limited", None)
    monkeypatch.setattr(build, "_checked", ByteCache(1))

    assert find_shipped_workflow(world.store, name).workflow.hash == checked.built.node.hash


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
        *("broken", "demo", "folder", "link", "misnamed", "pipe", "short", "two words")
    ]
    for name, row in rows.items():
        if "error" not in row:
            found = find_workflow(world.store, name, cwd=cwd)
            assert (found.workflow.hash, found.file) == (row["workflow"], row["file"])
        else:
            with refuses(BadLocalWorkflow, "no-such-workflow"):
                find_workflow(world.store, name, cwd=cwd)
    assert [name for name, row in rows.items() if "error" not in row] == ["demo", "short"]


def test_no_link_leads_out_of_the_project(project: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(DEMO.replace("name: demo", "name: secret"))
    (project / ".workflows" / "secret.yaml").symlink_to(tmp_path / "secret.yaml")
    (project / "src" / ".workflows").symlink_to(project.parent / ".workflows")

    for name in ("secret", "above"):
        found = find_local(str(project / "src"), name)
        assert found is not None
        with pytest.raises(BadLocalWorkflow, match="leads out of"):
            build_local(found)


def test_thread_of_a_local_file_carries_it_and_the_registry_gets_nothing(
    world: World, project: Path
) -> None:
    write(project, "demo", DEMO + "defaultAgent: theirs\n")
    world.caller = world.caller._replace(cwd=str(project / "src"))

    thread = world.start()

    assert list_names(world.store) == []
    found = find_workflow(world.store, world.snapshot(thread).record.workflow)
    assert (found.workflow.name, found.file) == ("demo", None)
    # A checkout that names an agent does not make it trusted.
    assert '{"command":"theirs"}' not in world.store.config.get_all("uwf.trustedAgent")
    (project / ".workflows" / "demo.yaml").unlink()
    assert world.step(thread).role == "writer"


def test_removal_is_a_commit_with_its_reason_and_nothing_is_lost(world: World) -> None:
    put = world.put()

    removed = remove_workflow(world.store, world.caller, "demo", reason="It was bad.")

    removal, version = list_versions(world.store)
    assert (removal.commit.oid, version.commit.oid) == (removed.version, put.version)
    assert body_of(removal.commit.message) == "It was bad."
    assert find_workflow(world.store, put.workflow).workflow.name == "demo"
    world.assert_whole()


def test_version_that_came_in_between_is_not_removed_unseen(world: World) -> None:
    world.put()
    changed = DEMO.replace("Writes.", "Writes well.")

    def now_ms() -> int:
        # The clock is read after the registry.
        world.put(changed)
        return 1_760_000_000_000

    with refuses("workflow-moved"):
        remove_workflow(world.store, world.caller._replace(now_ms=now_ms), "demo")
    version = find_version(world.store, "demo")
    assert version is not None
    assert not version.is_removed
