from pathlib import Path

from commands.world import DEMO, World

from uwf_git.commands.workflow.history import show_workflow

FULL = DEMO + (
    "defaultAgent: uwf-x\nagentOverrides: {checker: {command: cc, timeout: 5}}\n"
    "initialState: {n: 1}\nconfig: {maxSteps: 4, eventEmit: false}\n"
)


def test_workflow_is_shown_as_its_file_says_it(world: World) -> None:
    put = world.put(FULL)

    shown = show_workflow(world.store, "demo")

    assert (shown["workflow"], shown["name"]) == (put.workflow, "demo")
    writer, checker = shown["roles"]["writer"], shown["roles"]["checker"]
    assert (writer["systemPrompt"], checker["extractPrompt"]) == ("Write.", "Is it good?")
    assert writer["outputSchema"]["required"] == ["text"]
    assert "extractPrompt" not in writer
    assert shown["moderator"]["graph"][2] == {
        "from": "checker",
        "transitions": [
            {"to": "writer", "condition": "meta.ok = false"},
            {"to": "$END", "condition": None},
        ],
    }
    assert shown["defaultAgent"] == {"command": "uwf-x"}
    assert shown["agentOverrides"] == {"checker": {"command": "cc", "timeout": 5}}
    assert shown["initialState"] == {"n": 1}
    assert shown["config"] == {"maxSteps": 4, "eventEmit": False}


def test_older_version_is_shown_by_its_hash(world: World) -> None:
    first = world.put()
    world.put(FULL)

    assert "initialState" not in show_workflow(world.store, first.workflow)


def test_file_of_the_project_is_shown_with_its_path(world: World, tmp_path: Path) -> None:
    put = world.put()
    path = tmp_path / ".workflows" / "demo.yaml"
    path.parent.mkdir()
    path.write_text(DEMO.replace("Write.", "Write here."))

    shown = show_workflow(world.store, "demo", cwd=str(tmp_path))

    assert shown["roles"]["writer"]["systemPrompt"] == "Write here."
    assert (shown["file"], shown["shadows"]) == (str(path), put.workflow)
    assert "file" not in show_workflow(world.store, "demo")
