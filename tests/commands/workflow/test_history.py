import json
from collections.abc import Callable

import pytest
from commands.forging import forge, holds, place
from commands.world import DEMO, World
from refusing import refuses
from store.small_packs import lose

from uwf_git.commands.workflow.build import PutWorkflow, build_source
from uwf_git.commands.workflow.find import WorkflowRemoved, find_workflow
from uwf_git.commands.workflow.history import (
    Contents,
    RolledBack,
    choose_version,
    compare_versions,
    describe_workflow,
    get_newest,
    list_history,
    remove_workflow,
    rollback_workflow,
    show_workflow,
)
from uwf_git.errors import StoreDamaged
from uwf_git.model.workflow import parse_workflow
from uwf_git.model.yaml_reader import Includes
from uwf_git.store.nodes import MissingNode
from uwf_git.store.trust import list_trusted, untrust_agents
from uwf_git.store.workflows import SourceFiles, Version, find_version, list_versions, read_sources

REF = "refs/workflows/demo"


@pytest.fixture
def puts(world: World) -> list[PutWorkflow]:
    """Put three versions."""
    texts = [DEMO, DEMO.replace("Write.", "Write well."), "# why\n" + DEMO]
    return [world.put(text) for text in texts]


def test_limit_shortens_the_list_and_not_the_rows(world: World, puts: list[PutWorkflow]) -> None:
    rollback_workflow(world.store, world.caller, "demo", text=puts[0].version)

    assert list_history(world.store, "demo", limit=1) == list_history(world.store, "demo")[:1]
    assert list_history(world.store, "demo", limit=1)[0]["restored"] == puts[0].version
    assert len(list_history(world.store, "demo", limit=9)) == 4


def test_damaged_version_is_a_row_that_says_so(world: World, puts: list[PutWorkflow]) -> None:
    role = find_workflow(world.store, puts[1].workflow).workflow.roles["writer"]
    forge(world.store, REF, {1: holds(world.store, place(role), None)})

    newest, damaged, first = list_history(world.store, "demo")

    assert role in damaged["error"]
    assert "changes" not in newest
    assert "changes" not in damaged
    assert first["workflow"] == puts[0].workflow


def test_history_that_breaks_off_ends_in_a_row_that_says_why(
    world: World, puts: list[PutWorkflow]
) -> None:
    lose(world.store, puts[0].version)
    world.reopen()

    newest, last, end = list_history(world.store, "demo")

    assert (newest["event"], last["event"]) == ("put", "put")
    assert (last["before"], "changes" in last) == (puts[0].version, False)
    assert list(end) == ["error"]
    assert puts[0].version in end["error"]


def test_newest_version_that_is_damaged_is_an_error(world: World, puts: list[PutWorkflow]) -> None:
    lose(world.store, puts[2].version)
    world.reopen()

    with pytest.raises(StoreDamaged, match=puts[2].version):
        list_history(world.store, "demo")


def contents(text: str = DEMO, **files: bytes) -> Contents:
    built = build_source(text.encode(), Includes(files.__getitem__), timestamp=0)
    described = describe_workflow(parse_workflow(built.node), [built.node, *built.closure])
    return Contents(described, SourceFiles(text.encode(), built.included))


def told(old: Contents, new: Contents) -> list[tuple[str, str]]:
    return [(each.kind, each.path) for each in compare_versions(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("Write until", "Go on until", [("changed", "description")]),
        ("Write.", "Write well.", [("changed", "roles.writer.systemPrompt")]),
        ("type: string", "type: integer", [("changed", "roles.writer.outputSchema")]),
        ("    extractPrompt: Is it good?\n", "", [("removed", "roles.checker.extractPrompt")]),
        ("meta.ok = false", "meta.ok != true", [("changed", "transitions.checker")]),
        ("START, to: writer", "START, to: checker", [("changed", "transitions.$START")]),
        ("description: Write", "# why\ndescription: Write", [("changed", "file workflow.yaml")]),
    ],
)
def test_changes_have_the_names_of_the_file(
    old: str, new: str, changes: list[tuple[str, str]]
) -> None:
    before, after = contents(), contents(DEMO.replace(old, new, 1))

    assert told(before, after) == changes
    assert told(before, before) == told(after, after) == []
    turned = {"added": "removed", "removed": "added", "changed": "changed"}
    assert told(after, before) == [(turned[kind], path) for kind, path in changes]


def test_workflow_that_plays_a_role_is_shown_and_compared(world: World) -> None:
    outer = (
        "name: outer\nroles: {team: {workflow: demo}}\n"
        "moderator: [{from: $START, to: team}, {from: team, to: $END}]\n"
    )
    for text in (DEMO, DEMO.replace("Writes.", "Writes well.")):
        inner = world.put(text)
        world.put(outer)

    assert show_workflow(world.store, "outer")["roles"]["team"]["workflow"] == inner.workflow
    (change,) = list_history(world.store, "outer")[0]["changes"]
    assert change == {"kind": "changed", "path": "roles.team.workflow"}


def test_one_is_not_taken_for_true() -> None:
    one, true = (contents(f"{DEMO}initialState: {{n: {n}}}\n") for n in (1, "true"))
    assert told(one, true) == [("changed", "initialState.n")]


def test_included_files_are_named() -> None:
    one = DEMO.replace("systemPrompt: Check.", "systemPrompt: !include a")
    other = DEMO.replace("systemPrompt: Check.", "systemPrompt: !include b")

    assert told(contents(one, a=b"Check."), contents(one, a=b"Look.")) == [
        ("changed", "roles.checker.systemPrompt"),
        ("changed", "file a"),
    ]
    assert told(contents(one, a=b"x"), contents(other, b=b"x")) == [
        ("removed", "file a"),
        ("added", "file b"),
    ]


@pytest.fixture
def two(world: World) -> tuple[PutWorkflow, PutWorkflow]:
    """Put two versions."""
    return world.put(), world.put(DEMO.replace("Writes.", "Writes well."))


def back(world: World, text: str | None = None, **said: str) -> RolledBack:
    return rollback_workflow(world.store, world.caller, "demo", text=text, **said)


def test_version_before_the_newest_comes_back_as_a_new_commit(
    world: World, two: tuple[PutWorkflow, PutWorkflow]
) -> None:
    first, second = two

    done = back(world, reason="It was too good.")

    assert done[:2] == ("demo", first.workflow)
    assert (done.restored, done.replaced) == (first.version, second.workflow)
    newest, *before = list_versions(world.store)
    assert newest.commit.oid == done.version
    assert [each.commit.oid for each in before] == [second.version, first.version]
    assert read_sources(world.store.objects, newest.commit).workflow == DEMO.encode()
    assert list_history(world.store, "demo")[0]["reason"] == "It was too good."
    assert find_workflow(world.store, "demo").workflow.hash == first.workflow
    world.assert_whole()


def test_newest_version_is_not_restored(world: World, two: tuple[PutWorkflow, PutWorkflow]) -> None:
    with refuses("already-there", match=f"workflow demo is at {two[1].workflow} already"):
        back(world, two[1].workflow)
    assert len(list(list_versions(world.store))) == 2


def test_version_that_is_not_whole_is_not_brought_back(
    world: World, two: tuple[PutWorkflow, PutWorkflow]
) -> None:
    role = find_workflow(world.store, two[0].workflow).workflow.roles["writer"]
    _first, newest = forge(
        world.store, "refs/workflows/demo", {0: holds(world.store, place(role), None)}
    )

    with pytest.raises(MissingNode):
        back(world)
    version = find_version(world.store, "demo")
    assert version is not None
    assert version.commit.oid == newest


def test_agents_of_an_older_version_are_not_trusted_by_it(world: World) -> None:
    world.put(DEMO + "defaultAgent: theirs\n")
    world.put(DEMO)
    untrust_agents(world.store, command="theirs")

    back(world)

    assert list_trusted(world.store) == []


FULL = DEMO + (
    "defaultAgent: uwf-x\nagentOverrides: {checker: {command: cc, timeout: 5}}\n"
    "initialState: {n: 1}\nconfig: {maxSteps: 4, eventEmit: false}\n"
)


def test_workflow_is_shown_as_its_file_says_it(
    world: World, golden: Callable[[str, str], None]
) -> None:
    world.put(FULL)

    golden(
        "commands/workflow.json", json.dumps(show_workflow(world.store, "demo"), indent=2) + "\n"
    )


@pytest.fixture
def versions(world: World) -> list[Version]:
    """Put three versions: the second one equals the first."""
    world.put()
    world.put("# a comment\n" + DEMO)
    world.put(DEMO.replace("Writes.", "Writes well."))
    return list(list_versions(world.store))


def test_removed_workflow_is_newest_but_not_present(world: World, versions: list[Version]) -> None:
    remove_workflow(world.store, world.caller, "demo")

    assert get_newest(world.store, "demo").is_removed
    with pytest.raises(WorkflowRemoved):
        remove_workflow(world.store, world.caller, "demo")


def test_beginning_that_several_have_is_refused_with_all_of_them(world: World) -> None:
    for number in range(17):
        world.put(DEMO.replace("Writes.", f"Writes {number}."))
    versions = list(list_versions(world.store))
    names = [version.workflow for version in versions]
    prefix = next(name[0] for name in names if sum(other[0] == name[0] for other in names) > 1)

    with refuses("ambiguous-version") as caught:
        choose_version("demo", versions, prefix)

    assert caught.value.facts["matches"] == sorted(n for n in names if n[0] == prefix)
