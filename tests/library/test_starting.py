from pathlib import Path

import pytest
from commands.world import DEMO
from refusing import refuses

from uwf_git import BadUsage, Limits, Refused, TaskRuntime
from uwf_git.library.starting import (
    SourceText,
    find_source,
    read_source,
    to_agent_words,
    to_limit_names,
)
from uwf_git.model.limits import LIMITS
from uwf_git.model.yaml_reader import parse_yaml


@pytest.mark.parametrize(
    ("workflow", "told"),
    [
        ("none", "there is no workflow none"),
        ("none.yaml", r"none\.yaml' cannot be read: No such file or directory"),
        ("no/such/file", "No such file"),
        ("roles:\n  - 1\n", "problem"),
    ],
)
def test_invalid_task_is_refused(workflow: str, told: str, runtime: TaskRuntime) -> None:
    with pytest.raises((Refused, OSError), match=told):
        runtime.start(workflow, "Do it.")
    assert runtime.list() == ()


def test_agents_are_written_as_they_are_typed() -> None:
    assert to_agent_words(None) == ()
    assert to_agent_words("uwf-claude --fast") == ("uwf-claude --fast",)
    assert to_agent_words({"a": "one", "b": "two=2"}) == ("a=one", "b=two=2")
    assert to_agent_words({"a": {"command": "ü", "timeout": 1}}) == (
        'a={"command": "ü", "timeout": 1}',
    )
    with refuses("bad-settings", match="the agent of a cannot be written as JSON"):
        to_agent_words({"a": {"command": object()}})


def test_every_limit_has_a_python_name() -> None:
    every = Limits(max_steps=1, max_execution_time=2, max_tokens=3, max_cost=None)

    assert sorted(to_limit_names(every)) == sorted(LIMITS)
    assert set(every) == set(Limits.__annotations__)
    assert to_limit_names(every)["maxCost"] is None
    assert to_limit_names(None) == {}


def test_unknown_limit_is_refused(runtime: TaskRuntime) -> None:
    with pytest.raises(Refused, match="max_stepps is no limit"):
        runtime.start(DEMO, "Do it.", limits={"max_stepps": 1})  # type: ignore[arg-type]  # that is what is tried


@pytest.mark.parametrize("name", ["demo", "4B1A5GFXFHAJF", "yaml", ""])
def test_text_of_one_line_without_a_slash_is_a_name(name: str, tmp_path: Path) -> None:
    assert find_source(name, str(tmp_path)) is None
    with pytest.raises(BadUsage, match="is neither YAML nor the path of a file"):
        read_source(name, str(tmp_path))


def test_file_is_read_where_the_runtime_stands(tmp_path: Path) -> None:
    path = tmp_path / "demo.yaml"
    path.write_text(DEMO)

    expected = SourceText(DEMO.encode(), str(path))
    assert find_source("demo.yaml", str(tmp_path)) == expected
    assert find_source(f"{tmp_path}/demo.yaml", "/") == expected
    assert find_source(path, "/") == expected
    assert find_source(Path("demo.yaml"), str(tmp_path)) == expected


def test_yaml_is_text_of_several_lines_or_bytes() -> None:
    assert (
        find_source(DEMO, "/") == find_source(DEMO.encode(), "/") == SourceText(DEMO.encode(), None)
    )


def test_definition_as_python_has_it_is_the_same_workflow(runtime: TaskRuntime) -> None:
    definition = parse_yaml(DEMO).value
    by_text = runtime.put(DEMO)
    by_definition = runtime.put(definition)

    assert by_definition.workflow == by_text.workflow
    assert runtime.start(definition, "Do it.").workflow_name == "demo"


def test_file_includes_files_beside_it(runtime: TaskRuntime, tmp_path: Path) -> None:
    (tmp_path / "write.md").write_text("Write well.")
    (tmp_path / "demo.yaml").write_text(
        DEMO.replace("systemPrompt: Write.", "systemPrompt: !include write.md")
    )

    assert runtime.put("demo.yaml").changed
    assert not runtime.put(tmp_path / "demo.yaml").changed
