import pytest
from commands.world import DEMO

from uwf_git.commands.workflow.build import build_source
from uwf_git.commands.workflow.history import Contents, compare_versions, describe_workflow
from uwf_git.model.workflow import parse_workflow
from uwf_git.model.yaml.include import Includes
from uwf_git.store.workflows import SourceFiles


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
        (
            "moderator:\n  graph:\n    - from: $START\n      transitions:\n        - to: writer\n",
            "moderator:\n  graph:\n    - from: $START\n      transitions:\n        - to: checker\n",
            [("changed", "transitions.$START")],
        ),
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


def test_settings_are_compared_one_by_one() -> None:
    before = contents(DEMO + "agentOverrides: {writer: a, checker: b}\ninitialState: {n: 1}\n")
    after = contents(DEMO + "agentOverrides: {writer: c}\ninitialState: {n: 1, m: 2}\n")

    assert told(before, after) == [
        ("changed", "agentOverrides.writer"),
        ("removed", "agentOverrides.checker"),
        ("added", "initialState.m"),
    ]
    assert ("added", "defaultAgent") in told(contents(), contents(DEMO + "defaultAgent: x\n"))


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
