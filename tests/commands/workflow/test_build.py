import os
from pathlib import Path
from typing import Any

import pytest
from commands.forging import WRITER, forge, twin_role
from commands.world import DEMO, Git, World
from refusing import refuses

from uwf_git.agents.limited_fork import RunLimits
from uwf_git.commands.workflow.build import (
    MOST_CONDITIONS,
    PutWorkflow,
    problems_of,
    put_workflow,
    read_with_checks,
    read_workflow_source,
    validate_workflow,
)
from uwf_git.commands.workflow.find import read_below
from uwf_git.errors import Problem
from uwf_git.model.definition.definition import CheckText, InvalidWorkflow, ListReads, table_text
from uwf_git.model.definition.roles import CheckSchema
from uwf_git.model.node import NotCanonical
from uwf_git.model.yaml_reader import MAX_FILE_BYTES, BadYaml, CannotInclude, Includes
from uwf_git.store.store import create_store
from uwf_git.store.trust import is_trusted
from uwf_git.store.workflows import list_names, list_versions


def test_problems_have_the_file_that_was_named() -> None:
    assert problems_of(BadYaml("no", line=2), "a/b.yaml") == [Problem("", "no", 2, "a/b.yaml")]
    (problem,) = problems_of(NotCanonical("x", "is too much"), "b.yaml")
    assert (problem.file, problem.line) == ("b.yaml", None)
    assert "is too much" in problem.message


SLOW = "/" + "(a|b[c-\U0001ffff])" * 800 + "/i"
SHORT = RunLimits(wall_s=0.5)


def check_all(conditions: list[str], schemas: list[Any], **said: Any) -> list[Any]:
    def read(check: CheckText, schema: CheckSchema, _list_reads: ListReads) -> list[Any]:
        return [*map(check, map(table_text, conditions)), *map(schema, schemas)]

    return read_with_checks(read, **said)


def test_one_limit_holds_for_all_and_what_hit_it_is_named() -> None:
    told = check_all(["a = 1", SLOW, SLOW + " "], [{}], limits=SHORT)

    assert (told[0], told[2], told[3]) == (None, None, [])
    assert "the check of the conditions and schemas took too much time" in told[1]

    large = {"required": [str(each) for each in range(400_000)]}
    told = check_all(["a = 1"], [{}, large], limits=SHORT)
    assert told[:2] == [None, []]
    assert "took too much time" in told[2][0].message


def test_number_of_conditions_is_limited() -> None:
    ways = "".join(
        f"  - {{from: $START, to: $END, condition: a = {number}}}\n"
        for number in range(MOST_CONDITIONS + 2)
    )
    source = f"name: x\nroles: {{}}\nmoderator:\n{ways}"

    with pytest.raises(InvalidWorkflow) as caught:
        read_workflow_source(source.encode(), Includes(lambda _path: b""))

    last = [each for each in caught.value.problems if "one condition too many" in each.message]
    assert [each.line for each in last] == [MOST_CONDITIONS + 4, MOST_CONDITIONS + 5]


def test_a_wrong_over_is_no_condition_too_many() -> None:
    source = """\
name: x
root:
  type: loop
  over: "[{file: 1}]"
  as: plan
  nodes:
    - {type: agent, agentId: a, input: "Do ${plan.file}"}
"""
    with pytest.raises(InvalidWorkflow) as caught:
        read_workflow_source(source.encode(), Includes(lambda _path: b""))
    assert "too many" not in "".join(each.message for each in caught.value.problems)


def test_every_problem_has_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "roles.yaml").write_text("checker:\n  outputSchema: {type: objec}\n")
    source = "name: -x\nroles: !include parts/roles.yaml\nmoderator: [{from: $START, to: $END}]\n"

    problems = validate_workflow(
        source.encode(), path=str(tmp_path / "demo.yaml"), shown="flows/demo.yaml"
    ).problems

    found = [(each.file, each.line, each.path) for each in problems]
    assert found[0] == ("flows/demo.yaml", 1, "name")
    assert ("flows/parts/roles.yaml", 2, "roles.checker.outputSchema.type") in found
    assert ("flows/demo.yaml", 3, "moderator[0].to") not in found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder, beside a file that must not be read."""
    (tmp_path / "secret").write_text("secret")
    made = tmp_path / "made"
    (made / "inner").mkdir(parents=True)
    (made / "a.md").write_bytes(b"a\r\n\xff")
    (made / "inner" / "b.md").write_text("b")
    return made


def refused(folder: Path, path: str) -> str:
    with pytest.raises(CannotInclude) as caught:
        read_below(str(folder), path)
    return caught.value.problem


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "inner/../../secret"])
def test_link_that_leads_out_is_refused(target: str, folder: Path) -> None:
    (folder / "link.md").symlink_to(target)

    assert refused(folder, "link.md") == f"it is a link that leads out of {folder}"


def test_pipe_does_not_block(folder: Path) -> None:
    os.mkfifo(folder / "pipe")

    assert refused(folder, "pipe") == "it is not a plain file"
    assert refused(folder, "inner") in {"it is not a plain file", "Is a directory"}


@pytest.mark.parametrize("path", ["gone.md", "gone/a.md", "a.md/b", "a\0b", "x" * 300])
def test_missing_file_is_refused(path: str, folder: Path) -> None:
    assert refused(folder, path)


def test_large_file_is_read_only_up_to_the_limit(folder: Path) -> None:
    (folder / "large").write_bytes(b"x" * (3 * MAX_FILE_BYTES))

    assert len(read_below(str(folder), "large")) == MAX_FILE_BYTES + 1


def test_folder_that_is_a_link_out_is_refused(folder: Path) -> None:
    (folder / "up").symlink_to("..")

    assert "leads out" in refused(folder, "up/secret")


def test_links_in_a_circle_are_refused(folder: Path) -> None:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")

    assert refused(folder, "one")


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
def folder_put(tmp_path: Path) -> Path:
    """Make a folder with a file to include."""
    (tmp_path / "flows" / "prompts").mkdir(parents=True)
    (tmp_path / "flows" / "prompts" / "check.md").write_bytes(b"Check.\r\n")
    return tmp_path / "flows"


def put_in(world: World, folder_put: Path, source: str = INCLUDING) -> PutWorkflow:
    path = str(folder_put / "demo.yaml")
    return put_workflow(world.store, world.caller, source.encode(), path=path)


def test_changed_included_file_is_a_new_version(world: World, folder_put: Path) -> None:
    first = put_in(world, folder_put)
    assert put_in(world, folder_put) == first._replace(changed=False)

    (folder_put / "prompts" / "check.md").write_text("Check well.\n")
    second = put_in(world, folder_put)

    assert second.changed
    assert second.workflow != first.workflow


@pytest.mark.parametrize("source", [DEMO, DEMO.replace("Check.", "Look.")])
def test_node_that_is_there_with_another_payload_is_not_taken(source: str, world: World) -> None:
    world.put()
    forge(world.store, "refs/workflows/demo", {-1: twin_role(world.store)})

    with refuses("node-collision", match=WRITER):
        world.put(source)


def test_tree_of_a_version_can_be_put_again(
    world: World, folder_put: Path, tmp_path: Path, git: Git
) -> None:
    first = put_in(world, folder_put)
    tree = ("--git-dir", world.store.path, "--work-tree", str(tmp_path / "out"))
    (tmp_path / "out").mkdir()
    git(*tree, "checkout", "-f", "refs/workflows/demo", "--", ".", cwd=tmp_path / "out")

    source = (tmp_path / "out" / "workflow.yaml").read_text()
    assert put_workflow(
        world.store, world.caller, source.encode(), path=str(tmp_path / "out" / "workflow.yaml")
    ) == first._replace(changed=False)
